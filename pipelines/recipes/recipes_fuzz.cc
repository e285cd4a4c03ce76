// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. What is read can be written or is refused, and what is written reads back.
#include <cstddef>
#include <cstdint>
#include <string>

#include "pipelines/recipes/deepspeed_json.h"
#include "pipelines/recipes/megatron_flags.h"
#include "pipelines/recipes/torchtitan_toml.h"

namespace pipelab {
namespace {

constexpr int64_t kDevices = 64;

template <typename Reader, typename Writer>
void Check(absl::string_view text, const Reader& read, const Writer& write) {
  const absl::StatusOr<Recipe> recipe = read(text, "fuzz", kDevices);
  if (!recipe.ok()) return;
  (void)DeepSpeedJson(*recipe);
  const absl::StatusOr<Settings> settings = write(*recipe);
  if (!settings.ok()) return;
  const absl::StatusOr<Recipe> again = read(settings->Text(), "again", kDevices);
  if (!again.ok() || !(again->config == recipe->config)) __builtin_trap();
}

}  // namespace
}  // namespace pipelab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read_flags = [](auto text, auto what, auto devices) {
    return pipelab::ReadMegatronFlags(text, what, devices);
  };
  pipelab::Check(text, read_flags, pipelab::MegatronSettings);
  pipelab::Check(text, pipelab::ReadTorchtitanToml, pipelab::TorchtitanSettings);
  return 0;
}
