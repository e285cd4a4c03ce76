#include "models/layers/quantize/int4_network.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/int4_weights.h"
#include "kernels/tensor/arena.h"
#include "models/checkpoint/safetensors.h"
#include "models/layers/quantize/quantize_model.h"
#include "models/layers/quantize/quantizer.h"
#include "models/layers/serial_trainer.h"
#include "models/layers/test_layers.h"
#include "models/zoo/gpt.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

// A small GPT, its codes by GPTQ, and the network that they make.
class Int4NetworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    config_.hidden = 40;  // of no group's or panel's size
    trainer_ = MakeTrainer(config_);
    QuantizeOptions options;
    options.group = 32;
    options.book = NormalFloat4();
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        const ModelInputs inputs,
        CalibrationInputs(*trainer_, MakeCpuBackend(&arena_), data_, /*samples=*/8));
    ASSERT_FALSE(inputs.empty());
    PIPELAB_ASSERT_OK_AND_ASSIGN(QuantizedMatrices matrices,
                                 QuantizeWeights(inputs, options, Quantizer::kGptq, *trainer_));
    name_ = matrices.begin()->first;
    network_ = NetworkOf(*trainer_, std::move(matrices));
    PIPELAB_ASSERT_OK_AND_ASSIGN(file_, ParseSafetensors(SerializeInt4Network(network_), "f"));
  }

  std::unique_ptr<SerialTrainer> MakeTrainer(const GptConfig& config) {
    backends_.push_back(MakeCpuBackend(&arena_));
    SerialOptions options;
    options.data = &data_;
    auto trainer = SerialTrainer::Create(*BuildGpt(config), backends_.back().get(), options);
    return *std::move(trainer);
  }

  // What reading `file`, whose sum is made right, says.
  static absl::Status Reading(Safetensors file) {
    file.metadata["checksum"] = ChecksumOf(file.tensors);
    return ParseInt4Network(SerializeSafetensors(file), "a.safetensors").status();
  }

  GptConfig config_ = SmallGpt(/*dropout=*/0, /*tied=*/false);
  const RandomTokens data_{6, 11};
  Arena arena_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::unique_ptr<SerialTrainer> trainer_;
  std::string name_;  // of a matrix
  Int4Network network_;
  Safetensors file_;
};

TEST_F(Int4NetworkTest, ReadsWhatItWrote) {
  const std::string path = JoinPath(::testing::TempDir(), "int4.safetensors");
  ASSERT_THAT(WriteInt4Network(path, network_), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Int4Network again, ReadInt4Network(path));
  EXPECT_EQ(again.model, network_.model);
  ASSERT_EQ(again.matrices.size(), network_.matrices.size());
  for (const auto& [name, q] : network_.matrices) {
    const QuantizedMatrix& other = again.matrices.at(name);
    EXPECT_EQ(other.shape.k, q.shape.k);
    EXPECT_EQ(other.shape.n, q.shape.n);
    EXPECT_EQ(other.shape.group, 32);
    EXPECT_EQ(other.book, q.book);
    EXPECT_EQ(other.codes_KN, q.codes_KN);
    EXPECT_EQ(other.scales_GN, q.scales_GN);
  }
  EXPECT_EQ(SerializeInt4Network(again), SerializeInt4Network(network_));
}

TEST_F(Int4NetworkTest, AnotherTrainerComputesTheSame) {
  for (const auto& [name, q] : network_.matrices) {
    ASSERT_THAT(trainer_->SetParameterValue(name, q.Values()), IsOk());
  }
  const auto other = MakeTrainer(config_);
  for (const auto& [key, tensor] : network_.rest) {  // so that all of it must come from the file
    const std::string name = key.substr(0, key.rfind('/'));
    PIPELAB_ASSERT_OK_AND_ASSIGN(std::vector<float> value, other->ParameterValue(name));
    for (float& x : value) x += 1;
    ASSERT_THAT(other->SetParameterValue(name, value), IsOk());
  }
  ASSERT_THAT(TakeInt4Network(network_, other.get()), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const double want, trainer_->Evaluate(data_, 0, 0, 4));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const double got, other->Evaluate(data_, 0, 0, 4));
  EXPECT_EQ(got, want);
}

// 4 bits a weight, 2 bytes a scale, and the padding of rows to 8 and of columns to 32.
TEST_F(Int4NetworkTest, HasTheBytesOfPackedMatrices) {
  const QuantizedMatrix& q = network_.matrices.at(name_);
  Arena arena;
  const Int4Weights packed = PackInt4(q.shape, q.book, q.codes_KN, q.scales_GN, &arena);
  const auto& codes = std::get<std::vector<int32_t>>(file_.tensors.at(name_ + "/codes").values);
  ASSERT_EQ(static_cast<int64_t>(4 * codes.size()), packed.codes.bytes());
  EXPECT_EQ(std::memcmp(codes.data(), packed.codes.data(), packed.codes.bytes()), 0);
  const auto& scales = std::get<std::vector<uint16_t>>(file_.tensors.at(name_ + "/scales").values);
  ASSERT_EQ(static_cast<int64_t>(2 * scales.size()), packed.scales.bytes());
  EXPECT_EQ(std::memcmp(scales.data(), packed.scales.data(), packed.scales.bytes()), 0);
}

TEST_F(Int4NetworkTest, SaysWhatIsWrong) {
  const auto refused = [&](const char* what, const auto& change) {
    Safetensors file = file_;
    change(file);
    EXPECT_THAT(Reading(file), StatusIs(absl::StatusCode::kDataLoss,
                                        HasSubstr(absl::StrCat("a.safetensors: ", what))));
  };
  const std::string m = absl::StrCat("matrix \"", name_, "\": ");
  const auto of = [&](const char* part) { return absl::StrCat("\"", name_, part, "\""); };
  const auto text = [](const std::string& s) { return s.c_str(); };
  ASSERT_THAT(Reading(file_), IsOk());
  refused("no network in 4 bits: its metadata do not say \"pipelab int4 network 1\"",
          [](Safetensors& f) { f.metadata["format"] = "pipelab training state 1"; });
  refused(text(m + "groups of 48 rows; 32, 64, 128 or all 40"),
          [&](Safetensors& f) { f.metadata[name_ + "/group"] = "48"; });
  refused(text(m + of("/scales") + " is ["),
          [&](Safetensors& f) { f.metadata[name_ + "/group"] = "64"; });
  refused(text(m + "no metadata " + of("/group")),
          [&](Safetensors& f) { f.metadata.erase(name_ + "/group"); });
  refused(text(m + "shape \"40\"; must be rows and columns, such as 512,128"),
          [&](Safetensors& f) { f.metadata[name_ + "/shape"] = "40"; });
  refused(text(m + "no tensor " + of("/scales")),
          [&](Safetensors& f) { f.tensors.erase(name_ + "/scales"); });
  refused(text(m + "no tensor " + of("/codes")),
          [&](Safetensors& f) { f.tensors.erase(name_ + "/codes"); });
  refused(text(m + of("/book") + " is not of F32"), [&](Safetensors& f) {
    f.tensors[name_ + "/book"] = {{16}, std::vector<int32_t>(16)};
  });
  refused(text(m + of("/codes") + " is [1,1,32]; its shape and groups make ["),
          [&](Safetensors& f) {
            f.tensors[name_ + "/codes"] = {{1, 1, 32}, std::vector<int32_t>(32)};
          });
}

TEST_F(Int4NetworkTest, SaysThatItIsDamaged) {
  std::get<std::vector<int32_t>>(file_.tensors.at(name_ + "/codes").values)[0] ^= 1;
  EXPECT_THAT(ParseInt4Network(SerializeSafetensors(file_), "f").status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       "f: damaged: its numbers are not those that were written"));
}

TEST_F(Int4NetworkTest, RefusesAnotherModel) {
  network_.source = "a.safetensors";
  GptConfig deeper = config_, narrower = config_;
  deeper.layers = 3;
  narrower.hidden = 16;
  EXPECT_THAT(TakeInt4Network(network_, MakeTrainer(deeper).get()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a.safetensors: has no parameter \"block2/")));
  EXPECT_THAT(TakeInt4Network(network_, MakeTrainer(narrower).get()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a.safetensors: parameter \"embedding/")));
  network_.model = "resnet";
  EXPECT_THAT(TakeInt4Network(network_, trainer_.get()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "a.safetensors: of the model \"resnet\", not \"gpt\""));
}

}  // namespace
}  // namespace pipelab
