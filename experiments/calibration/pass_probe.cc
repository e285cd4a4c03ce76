#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "experiments/calibration/probe_list.h"

namespace pipelab {
namespace {

class Passes {
 public:
  explicit Passes(ProbeList* list) : list_(*list) {}

  void All() {
    for (int64_t rows : Sizes({16, 64, 256, 1024, 4096, 16384})) {
      for (int64_t columns : Sizes({64, 256})) {
        Sums(rows, columns);
        if (rows < (1 << 14)) Copies(rows, columns);
        LayerNorms(rows, columns);
        BatchNorms(rows, columns);
        Activations(rows, columns);
        Losses(rows, columns);
      }
    }
    for (int64_t samples : Sizes({1, 8, 32})) {
      for (int64_t side : Sizes({4, 16})) {
        for (int64_t channels : Sizes({16, 128})) Pools(samples, side, channels);
      }
    }
    // Out of the caches of most processors.
    for (int64_t rows : Sizes({1 << 14, 1 << 16})) Copies(rows, 1 << 8);
    for (int64_t elements : Sizes({1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22})) Step(elements);
  }

 private:
  using Prepare = ProbeList::Prepare;

  std::vector<int64_t> Sizes(std::vector<int64_t> all) const { return list_.Sizes(std::move(all)); }

  // Counts `counted` numbers for each of rows x columns; its tensors have `held`.
  void Pass(const char* name, OperationKind kind, int64_t rows, int64_t columns, int64_t counted,
            int64_t held, Prepare prepare) {
    list_.Add(absl::StrCat(name, "/", rows, "x", columns),
              MemoryOperation(kind, counted * rows * columns), held * rows * columns,
              std::move(prepare));
  }

  void Copies(int64_t m, int64_t c) {
    Pass("Copy", OperationKind::kElementwise, m, c, 2, 2, [=](ProbeTensors* t) {
      const Tensor x = t->Cold({m, c});
      return [=, be = t->backend()] { be->Copy(x, be->Allocate({m, c})); };
    });
  }

  void Sums(int64_t m, int64_t c) {
    constexpr OperationKind kKind = OperationKind::kElementwise;
    Pass("Add", kKind, m, c, 3, 3, [=](ProbeTensors* t) {  // a join of branches
      const Tensor a = t->Cold({m, c}), b = t->Cold({m, c});
      return [=, be = t->backend()] { be->Add(a, b, be->Allocate({m, c})); };
    });
    Pass("AddInPlace", kKind, m, c, 3, 2, [=](ProbeTensors* t) {  // a residual, gradients
      const Tensor a = t->Cold({m, c}), y = t->Hot({m, c});
      return [=, be = t->backend()] { be->Add(y, a, y); };
    });
    Pass("CopyColumns", kKind, m, c, 2, 5, [=](ProbeTensors* t) {  // one of four that are joined
      const Tensor x = t->Cold({m, c}), y = t->Cold({m, 4 * c});
      return [=, be = t->backend()] { be->CopyColumns(x, 0, y, c, c); };
    });
  }

  void LayerNorms(int64_t m, int64_t c) {
    constexpr OperationKind kKind = OperationKind::kLayerNorm;
    Pass("LayerNorm", kKind, m, c, 2, 2, [=](ProbeTensors* t) {
      const Tensor x = t->Hot({m, c}), column = t->Cold({c});
      const Tensor mean = t->Cold({m}), rstd = t->Cold({m});
      return [=, be = t->backend()] {
        be->LayerNorm(x, column, column, be->Allocate({m, c}), mean, rstd);
      };
    });
    Pass("LayerNormInputGradient", kKind, m, c, 3, 3, [=](ProbeTensors* t) {
      const Tensor x = t->Cold({m, c}), dy = t->Hot({m, c});
      const Tensor column = t->Cold({c}), mean = t->Cold({m}), rstd = t->Cold({m});
      return [=, be = t->backend()] {
        be->LayerNormInputGradient(dy, x, column, mean, rstd, be->Allocate({m, c}));
      };
    });
    Pass("LayerNormWeightGradient", kKind, m, c, 2, 2, [=](ProbeTensors* t) {
      const Tensor x = t->Cold({m, c}), dy = t->Cold({m, c}), dgamma = t->Cold({c});
      const Tensor dbeta = t->Cold({c}), mean = t->Cold({m}), rstd = t->Cold({m});
      return
          [=, be = t->backend()] { be->LayerNormWeightGradient(dy, x, mean, rstd, dgamma, dbeta); };
    });
  }

  void BatchNorms(int64_t m, int64_t c) {
    constexpr OperationKind kKind = OperationKind::kBatchNorm;
    Pass("BatchNorm", kKind, m, c, 3, 2, [=](ProbeTensors* t) {
      const Tensor x = t->Hot({m, c}), column = t->Cold({c});
      const Tensor mean = t->Cold({c}), variance = t->Cold({c});
      return [=, be = t->backend()] {
        be->batch_norm().Forward(x, column, column, be->Allocate({m, c}), mean, variance);
      };
    });
    Pass("BatchNormInputGradient", kKind, m, c, 5, 2, [=](ProbeTensors* t) {
      const Tensor x = t->Cold({m, c}), dy = t->Hot({m, c}), gamma = t->Cold({c});
      const Tensor mean = t->Cold({c}), variance = t->Cold({c}), dgamma = t->Cold({c});
      const Tensor dbeta = t->Cold({c}), y = t->Cold({m, c});
      t->backend()->batch_norm().Forward(x, gamma, gamma, y, mean, variance);
      return [=, be = t->backend()] {  // the gradient takes dy's place
        be->batch_norm().InputGradient(dy, x, gamma, mean, variance, dy, dgamma, dbeta);
      };
    });
  }

  void Activations(int64_t m, int64_t c) {
    Pass("Relu", OperationKind::kActivation, m, c, 2, 2, [=](ProbeTensors* t) {
      const Tensor x = t->Cold({m, c});
      return [=, be = t->backend()] { be->Relu(x, be->Allocate({m, c})); };
    });
    Pass("ReluGradient", OperationKind::kActivation, m, c, 3, 2, [=](ProbeTensors* t) {
      const Tensor x = t->Cold({m, c}), dy = t->Hot({m, c});
      return [=, be = t->backend()] { be->ReluGradient(dy, x, dy); };
    });
    Pass("Gelu", OperationKind::kGelu, m, c, 2, 2, [=](ProbeTensors* t) {
      const Tensor x = t->Hot({m, c});
      return [=, be = t->backend()] { be->Gelu(x, be->Allocate({m, c})); };
    });
    Pass("GeluGradient", OperationKind::kGelu, m, c, 3, 2, [=](ProbeTensors* t) {
      const Tensor x = t->Cold({m, c}), dy = t->Hot({m, c});
      return [=, be = t->backend()] { be->GeluGradient(dy, x, dy); };
    });
  }

  void Losses(int64_t m, int64_t v) {
    const auto targets = [m](ProbeTensors* t) {
      return t->backend()->arena().Zeros(DataType::kInt32, {m}, MemoryKind::kActivation);
    };
    Pass("CrossEntropy", OperationKind::kLoss, m, v, 2, 1, [=](ProbeTensors* t) {
      const Tensor logits = t->Hot({m, v}), of = targets(t);
      return [=, be = t->backend()] { be->loss().CrossEntropy(logits, of); };
    });
    Pass("CrossEntropyGradient", OperationKind::kLoss, m, v, 2, 1, [=](ProbeTensors* t) {
      const Tensor logits = t->Hot({m, v}), of = targets(t);
      return [=, be = t->backend()] {
        be->loss().CrossEntropyGradient(logits, of, /*scale=*/1, logits);
      };
    });
  }

  void Pools(int64_t samples, int64_t side, int64_t channels) {
    PoolingShape s;
    s.samples = samples;
    s.height = s.width = side;
    s.channels = channels;
    s.kernel_height = s.kernel_width = 3;
    s.pad_height = s.pad_width = 1;
    const Shape image = {samples, side, side, channels};
    const int64_t x = NumElements(image);
    const auto add = [&](const char* name, int64_t counted, Prepare prepare) {
      list_.Add(absl::StrCat(name, "/", samples, "x", side, "x", side, "x", channels),
                MemoryOperation(OperationKind::kPool, counted * x), counted * x,
                std::move(prepare));
    };
    add("MaxPool", 2, [=](ProbeTensors* t) {
      const Tensor in = t->Cold(image);
      return [=, be = t->backend()] { be->pooling().Max(s, in, be->Allocate(image)); };
    });
    add("MaxPoolGradient", 3, [=](ProbeTensors* t) {
      const Tensor in = t->Cold(image), dy = t->Hot(image);
      return [=, be = t->backend()] { be->pooling().MaxGradient(s, dy, in, be->Allocate(image)); };
    });
    add("AveragePool", 2, [=](ProbeTensors* t) {
      const Tensor in = t->Cold(image);
      return [=, be = t->backend()] { be->pooling().Average(s, in, be->Allocate(image)); };
    });
    add("AveragePoolGradient", 2, [=](ProbeTensors* t) {
      const Tensor dy = t->Hot(image);
      return [=, be = t->backend()] { be->pooling().AverageGradient(s, dy, be->Allocate(image)); };
    });
  }

  // Seven numbers of Adam, and the gradients that are cleared.
  void Step(int64_t elements) {
    Pass("AdamAndClear", OperationKind::kOptimizer, 1, elements, 8, 4, [=](ProbeTensors* t) {
      const Tensor w = t->Cold({elements}), dw = t->Cold({elements}), m = t->Cold({elements});
      const Tensor v = t->Cold({elements});
      t->backend()->Fill(v, 1);
      return [=, be = t->backend()] {
        be->optimizer().Adam({}, w, dw, m, v);
        be->Fill(dw, 0);
      };
    });
  }

  ProbeList& list_;
};

}  // namespace

void AddPasses(ProbeList* list) { Passes(list).All(); }

}  // namespace pipelab
