// Fields of the data of translation, beside kTokens (what the decoder reads) and kTargets.
#ifndef PIPELAB_MODELS_GRAPH_TRANSLATION_FIELDS_H_
#define PIPELAB_MODELS_GRAPH_TRANSLATION_FIELDS_H_

namespace pipelab {

inline constexpr char kSource[] = "source";               // what the encoder reads
inline constexpr char kSourceLength[] = "source_length";  // how much of it is no padding

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_TRANSLATION_FIELDS_H_
