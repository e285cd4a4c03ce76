#include "tests/fuzz_mutations.h"

#include <cctype>
#include <cstddef>
#include <utility>
#include <vector>

namespace pipelab {
namespace {

constexpr absl::string_view kAlphabet = "0123456789FBIWRS@.*+-,:#[]{}\" \n\r\t\\e\xff";
constexpr absl::string_view kNumbers[] = {"0",
                                          "1",
                                          "-1",
                                          "255",
                                          "256",
                                          "32767",
                                          "32768",
                                          "65536",
                                          "2147483647",
                                          "2147483648",
                                          "4294967295",
                                          "1e99",
                                          "0.5",
                                          "-0",
                                          "007",
                                          "9223372036854775807",
                                          "99999999999999999999999"};

struct Word {
  size_t begin = 0, size = 0;
};

template <typename Keep>
std::vector<Word> Split(absl::string_view text, Keep keep) {
  std::vector<Word> words;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!keep(text[i])) continue;
    const size_t begin = i;
    while (i < text.size() && keep(text[i])) ++i;
    words.push_back({begin, i - begin});
  }
  return words;
}

std::vector<Word> Words(absl::string_view text) {
  return Split(text, [](char c) { return c != ' ' && c != ',' && c != '\n' && c != '\r'; });
}
std::vector<Word> Numbers(absl::string_view text) {
  return Split(text, [](char c) { return c >= '0' && c <= '9'; });
}

class Mutation {
 public:
  Mutation(absl::string_view text, absl::string_view other, const CounterRng& rng, uint64_t* n)
      : text_(text), other_(other), rng_(rng), n_(n) {}

  std::string Run() {
    const size_t count = 1 + Below(1 + Below(4));  // often one
    for (size_t i = 0; i < count && !text_.empty(); ++i) Once();
    return std::move(text_);
  }

 private:
  size_t Below(size_t bound) { return bound == 0 ? 0 : rng_.Below((*n_)++, bound); }

  void Once() {
    const size_t at = Below(text_.size());
    switch (Below(8)) {
      case 0:
        text_[at] = static_cast<char>(text_[at] ^ (1 << Below(8)));
        return;
      case 1:
        text_[at] = kAlphabet[Below(kAlphabet.size())];
        return;
      case 2:
        text_.erase(at, 1 + Below(12));
        return;
      case 3:
        text_.insert(Below(text_.size()), text_.substr(at, 1 + Below(24)));
        return;
      case 4:
        return SwapWords();
      case 5:
        return ReplaceWord(Words(text_), other_, Words(other_));
      case 6: {
        const absl::string_view number = kNumbers[Below(sizeof(kNumbers) / sizeof(kNumbers[0]))];
        return ReplaceWord(Numbers(text_), number, {{0, number.size()}});
      }
      default:
        text_ = text_.substr(0, at).append(std::string(other_.substr(Below(other_.size()))));
        return;
    }
  }

  void SwapWords() {
    const std::vector<Word> words = Words(text_);
    Word a = words.empty() ? Word() : words[Below(words.size())];
    Word b = words.empty() ? Word() : words[Below(words.size())];
    if (a.begin > b.begin) std::swap(a, b);
    const std::string first = text_.substr(a.begin, a.size), second = text_.substr(b.begin, b.size);
    text_.replace(b.begin, b.size, first);
    text_.replace(a.begin, a.size, second);
  }

  void ReplaceWord(const std::vector<Word>& words, absl::string_view source,
                   const std::vector<Word>& sources) {
    if (words.empty() || sources.empty()) return;
    const Word to = words[Below(words.size())], from = sources[Below(sources.size())];
    text_.replace(to.begin, to.size, std::string(source.substr(from.begin, from.size)));
  }

  std::string text_;
  const absl::string_view other_;
  const CounterRng& rng_;
  uint64_t* n_;
};

}  // namespace

std::string MutateText(absl::string_view text, absl::string_view other, const CounterRng& rng,
                       uint64_t* n) {
  return Mutation(text, other, rng, n).Run();
}

}  // namespace pipelab
