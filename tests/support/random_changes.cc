#include "tests/support/random_changes.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/search/search_request.h"

namespace pipelab {
namespace {

// Moves a factor of one number to another, where it has one.
bool MoveFactor(Draws* draws, const std::vector<std::function<int64_t()>>& get,
                const std::vector<std::function<void(int64_t)>>& set) {
  const int64_t from = draws->Below(static_cast<int64_t>(get.size()));
  const int64_t to = draws->Below(static_cast<int64_t>(get.size()));
  const int64_t factor = draws->Of<int64_t>({2, 2, 3, 5});
  if (from == to || get[from]() % factor != 0) return false;
  set[from](get[from]() / factor);
  set[to](get[to]() * factor);
  return true;
}

}  // namespace

int NumRequests(int few) {
  const char* text = std::getenv("PIPELAB_REQUESTS");
  int requests = few;
  return text != nullptr && absl::SimpleAtoi(text, &requests) ? requests : few;
}

void ChangeOne(Draws* draws, StepConfig* c) {
  const auto number = [&](int StepConfig::*member) {
    return std::make_pair(
        std::function<int64_t()>([=] { return int64_t{c->*member}; }),
        std::function<void(int64_t)>([=](int64_t v) { c->*member = static_cast<int>(v); }));
  };
  const auto toggle = [&](bool StepConfig::*member) { c->*member = !(c->*member); };
  const auto step = [&](int StepConfig::*member) {
    c->*member = std::max(0, c->*member + static_cast<int>(draws->Of<int64_t>({-1, 1})));
  };
  const auto p = number(&StepConfig::pipeline), t = number(&StepConfig::tensor),
             x = number(&StepConfig::context), d = number(&StepConfig::data),
             m = number(&StepConfig::micro_batches);
  const auto b =
      std::make_pair(std::function<int64_t()>([=] { return c->micro_batch_size; }),
                     std::function<void(int64_t)>([=](int64_t v) { c->micro_batch_size = v; }));
  switch (draws->Below(15)) {
    case 0:  // the devices' places, with the batch as it is
      MoveFactor(draws, {p.first, t.first, x.first}, {p.second, t.second, x.second});
      break;
    case 1: {
      const StepConfig before = *c;
      if (MoveFactor(draws, {p.first, t.first, x.first, d.first},
                     {p.second, t.second, x.second, d.second})) {
        const int64_t samples = before.batch() / c->data;
        if (before.batch() % c->data != 0 || samples % c->micro_batch_size != 0) {
          *c = before;
        } else {
          c->micro_batches = static_cast<int>(samples / c->micro_batch_size);
        }
      }
      break;
    }
    case 2:
      MoveFactor(draws, {b.first, m.first}, {b.second, m.second});
      break;
    case 3:
      c->virtual_stages =
          std::max(0, c->virtual_stages + static_cast<int>(draws->Of<int64_t>({-1, 1, 2})));
      break;
    case 4: {
      std::vector<std::string> schemes;
      for (const Scheme& s : Catalog()) {
        if (IsBounded(s)) schemes.emplace_back(s.name);
      }
      c->scheme = draws->Of(schemes);
      c->group_size = c->replicas = 0;
      if (draws->Below(2) == 0) c->virtual_stages = 0;
      break;
    }
    case 5:
      c->recompute = draws->Of<Recompute>(
          {Recompute::kNone, Recompute::kSelective, Recompute::kFull, Recompute::kBlocks});
      c->rebuilt_blocks =
          c->recompute == Recompute::kBlocks ? static_cast<int>(draws->Below(4)) : 0;
      break;
    case 6:
      step(&StepConfig::rebuilt_blocks);
      break;
    case 7:
      c->sharding = draws->Of<Sharding>(
          {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully});
      if (c->sharding == Sharding::kReplicated) c->shards = 0;
      break;
    case 8:
      c->shards = static_cast<int>(draws->Of<int64_t>({0, 2, 3, 4, 8}));
      break;
    case 9:
      toggle(&StepConfig::sequence_parallel);
      if (!c->sequence_parallel) c->overlap_tensor = false;
      break;
    case 10:
      if (draws->Below(2) == 0) toggle(&StepConfig::overlap_tensor);
      c->context_exchange = draws->Of<ContextExchange>(
          {ContextExchange::kGather, ContextExchange::kRing, ContextExchange::kHeads});
      break;
    case 11:
      c->experts = static_cast<int>(draws->Of<int64_t>({1, 2, 3, 4, 6, 8}));
      c->whole_experts = c->experts > 1 && c->tensor > 1 && draws->Below(2) == 0;
      break;
    case 12: {
      if (!HasOption(c->scheme, kGroupSize)) break;
      c->group_size =
          draws->Of<int>({0, c->pipeline + 1 + static_cast<int>(draws->Below(c->pipeline)),
                          2 * c->pipeline, 3 * c->pipeline, c->micro_batches});
      break;
    }
    case 13:
      c->cut = draws->Of<CutRule>({CutRule::kBlocks, CutRule::kMemory, CutRule::kFlopsVariance});
      break;
    default:
      c->dispatch = draws->Of<Dispatch>({Dispatch::kRows, Dispatch::kOncePerNode});
      c->exchanges =
          draws->Of<Exchanges>({Exchanges::kWaited, Exchanges::kBeside, Exchanges::kBesideDelayed});
  }
  // Without a pipeline all orders of a chain are passes of one device: search has two of them.
  if (c->pipeline == 1 && c->scheme != "breadth_first") c->scheme = "interleaved";
  if (c->experts == 1) {
    c->dispatch = Dispatch::kRows;
    c->exchanges = Exchanges::kWaited;
  }
  // No key that a search varies, but where gradients are sharded.
  c->split_head =
      HasOption(c->scheme, kSplitBackward) && c->copies() > 1 && ShardsGradients(c->sharding);
}

}  // namespace pipelab
