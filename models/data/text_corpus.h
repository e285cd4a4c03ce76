// Text to train on: documents and the name that tables print for them.
//
//   TextCorpus corpus = SyntheticCorpus(/*bytes=*/1 << 20, /*seed=*/1);   // name "synthetic"
//
// A row or table about this text says corpus.name, so that generated text is never taken for real.
#ifndef PIPELAB_MODELS_DATA_TEXT_CORPUS_H_
#define PIPELAB_MODELS_DATA_TEXT_CORPUS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace pipelab {

struct TextCorpus {
  std::string name;                    // "austen", "synthetic"
  std::vector<std::string> titles;     // one a document
  std::vector<std::string> documents;  // lines end with '\n'

  int64_t bytes() const;
  int64_t lines() const;
};

// Generated text in six documents of about `bytes` in all, the same for a seed on every machine:
// words of a made-up lexicon, each likelier after some words than after others, in sentences and
// lines. A model can learn its letters, its words and some of their order, and cannot learn it by
// heart.
TextCorpus SyntheticCorpus(int64_t bytes, uint64_t seed);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_TEXT_CORPUS_H_
