#include "pipelines/step/megatron_layout.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "models/specs/further_token_spec.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMostLetters = 1 << 20;
constexpr absl::string_view kLetters = "EtmL|";

template <typename... Parts>
absl::Status LayoutError(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("Megatron-LM's layout: ", parts...));
}

// Takes "*4" off the front: 4; 1 where no star is there.
absl::StatusOr<int64_t> TakeTimes(absl::string_view* rest) {
  if (rest->empty() || rest->front() != '*') return 1;
  rest->remove_prefix(1);
  const size_t digits = std::min(rest->find_first_not_of("0123456789"), rest->size());
  int64_t times = 0;
  if (!absl::SimpleAtoi(rest->substr(0, digits), &times) || times > kMostLetters) {
    return LayoutError("'*", rest->substr(0, digits), "': a number from 0 to ", kMostLetters,
                       " must follow '*', as in t*4");
  }
  rest->remove_prefix(digits);
  return times;
}

absl::Status Append(absl::string_view letters, int64_t times, std::string* text) {
  if (static_cast<int64_t>(letters.size()) * times + static_cast<int64_t>(text->size()) >
      kMostLetters) {
    return LayoutError("more than ", kMostLetters, " letters");
  }
  for (int64_t i = 0; i < times; ++i) absl::StrAppend(text, letters);
  return absl::OkStatus();
}

// Letters and bars alone, without stars and parentheses.
absl::Status Expand(absl::string_view layout, bool in_group, std::string* text) {
  while (!layout.empty()) {
    const char letter = layout.front();
    layout.remove_prefix(1);
    std::string one(1, letter);
    if (letter == '(') {
      const size_t close = layout.find(')');
      if (in_group || close == absl::string_view::npos) {
        return LayoutError(in_group ? "parentheses do not nest; write the repeated stages out"
                                    : "'(' is not closed, as in (tt|)*4");
      }
      one.clear();
      PIPELAB_RETURN_IF_ERROR(Expand(layout.substr(0, close), /*in_group=*/true, &one));
      layout.remove_prefix(close + 1);
      if (layout.empty() || layout.front() != '*') {
        return LayoutError("a number must follow parentheses, as in (tt|)*4");
      }
    } else if (kLetters.find(letter) == absl::string_view::npos) {
      const char other =
          absl::ascii_isupper(letter) ? absl::ascii_tolower(letter) : absl::ascii_toupper(letter);
      const bool near = kLetters.find(other) != absl::string_view::npos;
      return LayoutError(
          "'", absl::string_view(&letter, 1), "' is no layer; there are E, t, m, L and |",
          near ? absl::StrCat("; did you mean ", absl::string_view(&other, 1), "?") : "");
    }
    PIPELAB_ASSIGN_OR_RETURN(const int64_t times, TakeTimes(&layout));
    PIPELAB_RETURN_IF_ERROR(Append(one, times, text));
  }
  return absl::OkStatus();
}

absl::Status CheckOrder(absl::string_view letters) {
  std::string all(letters);
  all.erase(std::remove(all.begin(), all.end(), '|'), all.end());
  if (all.empty() || all.front() != 'E' || std::count(all.begin(), all.end(), 'E') != 1) {
    return LayoutError("E, the embedding, must be first, and once");
  }
  if (all.back() != 'L' || std::count(all.begin(), all.end(), 'L') != 1) {
    return LayoutError("L, the loss, must be last, and once");
  }
  const size_t head = all.find('m');
  if (head != std::string::npos && all.find('t', head) != std::string::npos) {
    return LayoutError("t behind m: heads come after all Transformer layers");
  }
  return absl::OkStatus();
}

std::string Run(absl::string_view letter, int64_t times) {
  return times == 0 ? "" : times == 1 ? std::string(letter) : absl::StrCat(letter, "*", times);
}

std::string TextOf(const MegatronStage& s) {
  return absl::StrCat(s.embedding ? "E" : "", Run("t", s.transformers), Run("m", s.token_heads),
                      s.loss ? "L" : "");
}

absl::string_view WordOf(absl::string_view name) { return name.substr(0, name.find('/')); }

int64_t FurtherTokens(const ModelGraph& graph) {
  return std::count_if(graph.layers.begin(), graph.layers.end(),
                       [](const LayerSpec& layer) { return layer.kind == kFurtherToken; });
}

// [layer] Its number among the letters of a model: 0 the embedding, then the Transformer layers,
// then the loss, with which heads for further tokens are.
absl::StatusOr<std::vector<int>> LetterOfLayer(const ModelGraph& graph) {
  const int last = static_cast<int>(graph.layers.size()) - 1;
  if (last < 2) return LayoutError("a model of ", last + 1, " layers");
  std::vector<int> letters = {0};
  for (int i = 1; i < last; ++i) {
    const LayerSpec& layer = graph.layers[i];
    const bool chained =
        layer.inputs == std::vector<int>{i - 1} || absl::StartsWith(layer.name, kFurtherTokens);
    if (layer.name.find('/') == std::string::npos || !chained) {
      return LayoutError("layer ", layer.name,
                         " is neither the embedding, a part of a Transformer layer nor the loss");
    }
    const bool same = WordOf(layer.name) == WordOf(graph.layers[i - 1].name);
    letters.push_back(letters.back() + (same ? 0 : 1));
  }
  const bool further = WordOf(graph.layers[last].name) == WordOf(graph.layers[last - 1].name);
  letters.push_back(letters.back() + (further ? 0 : 1));
  return letters;
}

}  // namespace

bool IsMegatronLayout(absl::string_view layout) {
  return layout.find_first_of("EtL|*(") != absl::string_view::npos;
}

absl::StatusOr<std::vector<MegatronStage>> ParseMegatronLayout(absl::string_view layout) {
  std::string plain(layout), letters;
  plain.erase(std::remove(plain.begin(), plain.end(), ','), plain.end());
  PIPELAB_RETURN_IF_ERROR(Expand(plain, /*in_group=*/false, &letters));
  PIPELAB_RETURN_IF_ERROR(CheckOrder(letters));
  std::vector<MegatronStage> stages;
  for (const absl::string_view stage : absl::StrSplit(letters, '|')) {
    MegatronStage& made = stages.emplace_back();
    made.embedding = stage.find('E') != absl::string_view::npos;
    made.loss = stage.find('L') != absl::string_view::npos;
    made.transformers = std::count(stage.begin(), stage.end(), 't');
    made.token_heads = std::count(stage.begin(), stage.end(), 'm');
  }
  return stages;
}

std::string FormatMegatronLayout(const std::vector<MegatronStage>& stages) {
  std::string text;
  for (size_t begin = 0; begin < stages.size();) {
    size_t end = begin;
    while (end < stages.size() && stages[end] == stages[begin]) ++end;
    // The last stage has no bar behind it, so it is not part of a run.
    if (end == stages.size() && end - begin > 1) --end;
    const std::string stage = TextOf(stages[begin]);
    if (end - begin > 1) {
      absl::StrAppend(&text, "(", stage, "|)*", end - begin);
    } else {
      absl::StrAppend(&text, stage, end == stages.size() ? "" : "|");
    }
    begin = end;
  }
  return text;
}

std::vector<MegatronStage> StagesOfTransformers(const std::vector<int64_t>& transformers) {
  std::vector<MegatronStage> stages(transformers.size());
  for (size_t s = 0; s < stages.size(); ++s) stages[s].transformers = transformers[s];
  stages.front().embedding = true;
  stages.back().loss = true;
  return stages;
}

absl::StatusOr<std::vector<int>> StageOfLayerIn(const std::vector<MegatronStage>& stages,
                                                const ModelGraph& graph) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> letters, LetterOfLayer(graph));
  const int64_t further = FurtherTokens(graph);
  std::vector<int> stage_of_letter;
  for (size_t s = 0; s < stages.size(); ++s) {
    const int64_t heads = stages[s].token_heads;
    if (heads > 0 && further == 0) {
      return LayoutError("m: the model predicts one token; leave the heads for further ones out");
    }
    if (heads != (stages[s].loss ? further : 0)) {
      return LayoutError("stage ", s, " has ", heads, " heads for further tokens; all ", further,
                         " of the model are with L here, as ", Run("m", further), "L");
    }
    if (stages[s].empty()) {
      return LayoutError("stage ", s, " is empty, and every stage here has a layer; give it a t");
    }
    const int64_t layers = stages[s].transformers + stages[s].embedding + stages[s].loss;
    stage_of_letter.insert(stage_of_letter.end(), layers, static_cast<int>(s));
  }
  if (stage_of_letter.size() != static_cast<size_t>(letters.back()) + 1) {
    return LayoutError(static_cast<int64_t>(stage_of_letter.size()) - 2,
                       " Transformer layers, but the model has ", letters.back() - 1);
  }
  std::vector<int> stage_of_layer;
  for (const int letter : letters) stage_of_layer.push_back(stage_of_letter[letter]);
  return stage_of_layer;
}

absl::StatusOr<std::vector<MegatronStage>> MegatronStagesOf(
    const ModelGraph& graph, const std::vector<int>& stage_of_layer) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> letters, LetterOfLayer(graph));
  const int last = static_cast<int>(graph.layers.size()) - 1;
  std::vector<MegatronStage> stages(
      1 + *std::max_element(stage_of_layer.begin(), stage_of_layer.end()));
  for (int i = 0; i <= last; ++i) {
    const int stage = stage_of_layer[i];
    if (i > 0 && stage < stage_of_layer[i - 1]) {
      return LayoutError("stage ", stage, " is not a range of layers: it has ",
                         graph.layers[i].name);
    }
    if (i == 0) {
      stages[stage].embedding = true;
    } else if (i == last) {
      stages[stage].loss = true;
    } else if (graph.layers[i].kind == kFurtherToken) {
      ++stages[stage].token_heads;
    } else if (letters[i] != letters[i - 1]) {
      ++stages[stage].transformers;
    } else if (stage != stage_of_layer[i - 1]) {
      return LayoutError("stages ", stage - 1, " and ", stage, " share the Transformer layer ",
                         WordOf(graph.layers[i].name));
    }
  }
  return stages;
}

}  // namespace pipelab
