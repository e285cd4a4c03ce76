// Writes .mo files for tests.
#ifndef PIPELAB_MODELS_DATA_MO_TEST_WRITER_H_
#define PIPELAB_MODELS_DATA_MO_TEST_WRITER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pipelab {

inline std::string MoWord(uint32_t word, bool big) {
  std::string out;
  for (int b = 0; b < 4; ++b) out.push_back(static_cast<char>(word >> (big ? 24 - 8 * b : 8 * b)));
  return out;
}

inline std::string MoFile(const std::vector<std::pair<std::string, std::string>>& pairs,
                          bool big = false) {
  const uint32_t n = static_cast<uint32_t>(pairs.size());
  std::string head, ids, translations, text;
  for (const uint32_t word : {0x950412deu, 0u, n, 28u, 28 + 8 * n, 0u, 28 + 16 * n}) {
    head += MoWord(word, big);
  }
  const auto add = [&](const std::string& s, std::string* table) {
    *table += MoWord(static_cast<uint32_t>(s.size()), big) +
              MoWord(static_cast<uint32_t>(28 + 16 * n + text.size()), big);
    text += s + '\0';
  };
  for (const auto& pair : pairs) add(pair.first, &ids);
  for (const auto& pair : pairs) add(pair.second, &translations);
  return head + ids + translations + text;
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_MO_TEST_WRITER_H_
