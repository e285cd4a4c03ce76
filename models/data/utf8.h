// UTF-8 text as characters (Unicode code points) and back.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<uint32_t> characters, DecodeUtf8("ä"));     // {0xE4}
//   EncodeUtf8(0xE4)                                                                 // "ä"
#ifndef PIPELAB_MODELS_DATA_UTF8_H_
#define PIPELAB_MODELS_DATA_UTF8_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

// InvalidArgument for what is not UTF-8 (RFC 3629): no surrogates, no longer forms than needed.
absl::StatusOr<std::vector<uint32_t>> DecodeUtf8(absl::string_view text);

// U+FFFD for what is no character.
std::string EncodeUtf8(uint32_t character);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_UTF8_H_
