#include "experiments/vocabulary/vocabulary_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kSource[] = "Vocabulary parallelism (arXiv 2411.05288), 32 GPUs, 2048 tokens";
constexpr char kTag[] = "eye";
constexpr double kPoints = 3;        // of MFU
constexpr double kMemoryOff = 0.05;  // of a cell

constexpr VocabularySystem kSystems[] = {
    VocabularySystem::kBaseline, VocabularySystem::kRedistributed, VocabularySystem::kVocab1,
    VocabularySystem::kVocab2, VocabularySystem::kInterlaced};

double Gigabytes(Bytes bytes) { return static_cast<double>(bytes.value()) * 1e-9; }

// The largest difference of a system's MFU, with its sign, in points.
double MostOff(const std::vector<VocabularyCell>& cells, VocabularySystem system,
               VocabularyStep VocabularyCell::*step) {
  double most = 0;
  for (const VocabularyCell& c : cells) {
    if (c.system != system) continue;
    const double off = 100 * (c.*step).mfu - c.published.mfu;
    if (std::abs(off) > std::abs(most)) most = off;
  }
  return most;
}

Claim MfuClaim(const std::vector<VocabularyCell>& cells, const std::string& id,
               VocabularySystem system) {
  const std::string name = VocabularySystemName(system);
  Claim c = PaperClaim(absl::StrCat("vocabulary.mfu.", id),
                       absl::StrCat("MFU of ", name, " with 32k to 256k words"), kSource, kTag);
  c.published = "4 cells";
  c.unit = "points";
  const double off = MostOff(cells, system, &VocabularyCell::as_collectives);
  std::string text = absl::StrFormat("off by %+.1f points at most", off);
  if (IsDivided(system)) {
    absl::StrAppend(&text, absl::StrFormat("; %+.1f with an exchange a message a part",
                                           MostOff(cells, system, &VocabularyCell::as_messages)));
  }
  Found(&c, Origin::kSimulated, off, text);
  MetIf(&c, std::abs(off) <= kPoints, "each cell within 3 points",
        "a broadcast or reduction takes its bytes once on the link of the chain's end and nothing "
        "else: not the devices' time for it, and no slower products of many small passes; the "
        "paper does not print either");
  return c;
}

Claim MemoryClaim(const std::vector<VocabularyCell>& cells, const std::string& id,
                  VocabularySystem system) {
  Claim c = PaperClaim(
      absl::StrCat("vocabulary.memory.", id),
      absl::StrCat("peak memory of ", VocabularySystemName(system), " with 32k to 256k words"),
      kSource, kTag);
  std::vector<ComparedCell> compared;
  for (const VocabularyCell& cell : cells) {
    if (cell.system != system) continue;
    compared.push_back({absl::StrCat(cell.published.vocabulary), cell.published.memory,
                        Gigabytes(cell.as_collectives.memory)});
  }
  c.origin = Origin::kSimulated;
  MetWithinErrors(&c, ErrorsOf(compared), kMemoryOff,
                  "what the framework and its library keep is not in the simulation");
  return c;
}

Claim OrderClaim(const std::vector<VocabularyCell>& cells) {
  Claim c = PaperClaim("vocabulary.order", "systems in the order of their MFU, at each vocabulary",
                       kSource, kTag);
  c.published = "Vocab-1 and Vocab-2 over interlaced and redistributed, mostly over 1F1B";
  c.unit = "pairs";
  int pairs = 0, alike = 0;
  for (const VocabularyCell& a : cells) {
    for (const VocabularyCell& b : cells) {
      const double published = a.published.mfu - b.published.mfu;
      if (a.published.vocabulary != b.published.vocabulary || published <= 0) continue;
      ++pairs;
      alike += a.as_collectives.mfu > b.as_collectives.mfu;
    }
  }
  FoundAlike(&c, Origin::kSimulated, alike, pairs,
             "with 32768 words no move of whole blocks shortens the longest stage here, so that "
             "redistribution is 1F1B; and the exchange that interlaced does not hide costs little");
  return c;
}

Claim ActivationsClaim(const std::vector<VocabularyCell>& cells) {
  Claim c = PaperClaim("vocabulary.activations",
                       "micro-batches in flight on the first of p devices: p, p + 2, p + 1, 1.5 p",
                       "Vocabulary parallelism (arXiv 2411.05288), table of schedules", "read");
  c.published = "1F1B 32, Vocab-1 34, Vocab-2 33, interlaced 48";
  bool exact = !cells.empty();
  const int devices = VocabularySizes().devices;
  std::map<std::string, int> in_flight;
  for (const VocabularyCell& cell : cells) {
    const int more = cell.system == VocabularySystem::kVocab1       ? 2
                     : cell.system == VocabularySystem::kVocab2     ? 1
                     : cell.system == VocabularySystem::kInterlaced ? devices / 2
                                                                    : 0;
    exact = exact && cell.as_collectives.in_flight == devices + more;
    in_flight[cell.published.system] = cell.as_collectives.in_flight;
  }
  c.origin = Origin::kSimulated;
  for (const auto& [name, count] : in_flight) {
    absl::StrAppend(&c.ours, c.ours.empty() ? "" : ", ", name, " ", count);
  }
  MetIf(&c, exact, "exactly", "a schedule holds more or fewer");
  return c;
}

}  // namespace

absl::StatusOr<std::vector<VocabularyCell>> SimulateCells(const VocabularyPaper& paper,
                                                          const ClusterSpec& cluster) {
  std::vector<VocabularyCell> cells;
  for (const PublishedVocabularyCell& published : paper.cells) {
    VocabularyCell cell;
    cell.published = published;
    const auto* system = std::find_if(
        std::begin(kSystems), std::end(kSystems),
        [&](VocabularySystem s) { return VocabularySystemName(s) == published.system; });
    if (system == std::end(kSystems)) {
      return absl::NotFoundError(absl::StrCat("no system \"", published.system, "\""));
    }
    cell.system = *system;
    VocabularySizes sizes;
    sizes.vocabulary = published.vocabulary;
    PIPELAB_ASSIGN_OR_RETURN(
        cell.as_collectives,
        SimulateVocabulary(cell.system, sizes, cluster, VocabularyExchange::kCollectives));
    cell.as_messages = cell.as_collectives;
    if (IsDivided(cell.system)) {
      PIPELAB_ASSIGN_OR_RETURN(cell.as_messages, SimulateVocabulary(cell.system, sizes, cluster,
                                                                    VocabularyExchange::kMessages));
    }
    cells.push_back(std::move(cell));
  }
  return cells;
}

Table VocabularyTable(const std::vector<VocabularyCell>& cells) {
  Table t("cells", "MFU and peak memory by system and vocabulary: 32 GPUs, 2048 tokens");
  t.AddKey("system");
  t.AddKey("vocabulary", "words");
  const Origin published = Origin::kPublished, simulated = Origin::kSimulated;
  t.AddColumn({"mfu_published", "MFU", "", "%", published, 1});
  t.AddColumn({"mfu", "MFU", "", "%", simulated, 1});
  t.AddColumn({"mfu_off", "off by", "", "points", Origin::kComputed, 1});
  t.AddColumn({"mfu_messages", "MFU, a message a part", "", "%", simulated, 1});
  t.AddColumn({"memory_published", "peak memory", "", "GB", published, 1});
  t.AddColumn({"memory", "peak memory", "", "GB", simulated, 1});
  t.AddColumn({"in_flight", "in flight on the first device", "", "micro-batches", simulated, 0});
  for (const VocabularyCell& c : cells) {
    const PublishedVocabularyCell& p = c.published;
    const double mfu = 100 * c.as_collectives.mfu;
    t.AddRow({Label(p.system), Label(static_cast<double>(p.vocabulary)), Published(p.mfu, p.tag),
              Simulated(mfu), Computed(mfu - p.mfu), Simulated(100 * c.as_messages.mfu),
              p.memory > 0 ? Published(p.memory, p.tag) : Missing("not read off the figure"),
              Simulated(Gigabytes(c.as_collectives.memory)),
              Simulated(static_cast<double>(c.as_collectives.in_flight))});
  }
  t.AddNote(
      "Published points are read off a figure, +-0.5. 64 blocks of width 5120 with 40 heads and "
      "128 "
      "micro-batches of one sample are recalled and not read; the published memory of 1F1B grows "
      "by "
      "18.7 GB from 32768 to 262144 words, which at 16 bytes a parameter is a width of 5096.");
  t.AddNote(
      "Parts of the vocabulary and the chain's ends exchange by broadcasts and reductions, which "
      "the link of the chain's end carries once: their messages are priced with 1 / (P - 1) of the "
      "bytes. The second MFU has a message to or from each part, as programs run today.");
  return t;
}

std::vector<Claim> VocabularyClaims(const std::vector<VocabularyCell>& cells) {
  return {ActivationsClaim(cells),
          OrderClaim(cells),
          MfuClaim(cells, "baseline", VocabularySystem::kBaseline),
          MfuClaim(cells, "redistributed", VocabularySystem::kRedistributed),
          MfuClaim(cells, "vocab1", VocabularySystem::kVocab1),
          MfuClaim(cells, "vocab2", VocabularySystem::kVocab2),
          MfuClaim(cells, "interlaced", VocabularySystem::kInterlaced),
          MemoryClaim(cells, "baseline", VocabularySystem::kBaseline),
          MemoryClaim(cells, "vocab1", VocabularySystem::kVocab1),
          MemoryClaim(cells, "interlaced", VocabularySystem::kInterlaced)};
}

}  // namespace pipelab
