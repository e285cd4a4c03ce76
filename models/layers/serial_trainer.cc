#include "models/layers/serial_trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/layers/data_view.h"
#include "models/layers/factory.h"
#include "models/layers/initialize.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

void AddTo(Tensor* sum, Tensor share, Backend* backend) {
  if (sum->empty()) {
    *sum = std::move(share);
  } else {
    backend->Add(*sum, share, *sum);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<SerialTrainer>> SerialTrainer::Create(ModelGraph graph,
                                                                     Backend* backend,
                                                                     const SerialOptions& options) {
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  PIPELAB_RETURN_IF_ERROR(CheckOptimizer(options.optimizer));
  if (options.micro_batch_size < 1 || options.num_micro_batches < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("serial training needs samples and micro-batches, not ",
                     options.micro_batch_size, " and ", options.num_micro_batches));
  }
  std::vector<std::vector<int>> all_sums = options.sums_of_stage;
  if (!options.sum_of_micro_batch.empty()) all_sums.push_back(options.sum_of_micro_batch);
  for (const std::vector<int>& sums : all_sums) {
    if (static_cast<int>(sums.size()) == options.num_micro_batches &&
        *std::min_element(sums.begin(), sums.end()) >= 0) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat("serial training of ", options.num_micro_batches,
                                                   " micro-batches needs as many ",
                                                   "partial sums, from 0 on, not ", sums.size()));
  }
  for (const LayerSpec& layer : graph.layers) {
    PIPELAB_RETURN_IF_ERROR(CheckData(layer, options.data));
  }
  if (!options.stage_of_layer.empty() && options.stage_of_layer.size() != graph.layers.size()) {
    return absl::InvalidArgumentError(absl::StrCat("serial training of ", graph.layers.size(),
                                                   " layers got the stages of ",
                                                   options.stage_of_layer.size()));
  }
  const int stages = static_cast<int>(options.sums_of_stage.size());
  if (stages > 0 &&
      (options.stage_of_layer.empty() ||
       *std::max_element(options.stage_of_layer.begin(), options.stage_of_layer.end()) >= stages)) {
    return absl::InvalidArgumentError(
        absl::StrCat("serial training got the sums of ", stages, " stages and layers of others"));
  }
  if (!options.norm_parts.empty() && options.norm_parts.size() != graph.layers.size()) {
    return absl::InvalidArgumentError(absl::StrCat("serial training of ", graph.layers.size(),
                                                   " layers got the parts of ",
                                                   options.norm_parts.size()));
  }
  if (options.shards < 0 || (options.shards > 0 && options.copies % options.shards != 0)) {
    return absl::InvalidArgumentError(absl::StrCat("serial training of ", options.copies,
                                                   " copies got shards of ", options.shards));
  }
  std::vector<int> all_parts = options.norm_parts;
  all_parts.push_back(options.copies);
  for (int parts : all_parts) {
    if (parts >= 1 && options.micro_batch_size % parts == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("micro-batches of ", options.micro_batch_size,
                                                   " samples do not divide into ", parts,
                                                   " parts"));
  }
  const Staleness& staleness = options.staleness;
  if (staleness.per_update < 0 ||
      (staleness.per_update > 0 && options.num_micro_batches % staleness.per_update != 0)) {
    return absl::InvalidArgumentError(absl::StrCat(options.num_micro_batches,
                                                   " micro-batches with an optimizer step after ",
                                                   "each ", staleness.per_update));
  }
  std::vector<TokenSlice> slices = {TokenSlice()};
  if (options.slices.size() > 1) {
    PIPELAB_RETURN_IF_ERROR(CheckTakesSlices(graph));
    PIPELAB_ASSIGN_OR_RETURN(slices,
                             MakeTokenSlices(options.slices, options.data->targets_per_sample()));
  }
  const NumberWidth width{SizeOf(backend->activation_type())};
  PIPELAB_ASSIGN_OR_RETURN(graph, WithNumberWidth(std::move(graph), width, "--dtype=bf16"));
  auto trainer =
      std::unique_ptr<SerialTrainer>(new SerialTrainer(std::move(graph), backend, options));
  trainer->slices_ = std::move(slices);
  PIPELAB_RETURN_IF_ERROR(trainer->MakeLayers());
  return trainer;
}

SerialTrainer::SerialTrainer(ModelGraph graph, Backend* backend, const SerialOptions& options)
    : graph_(std::move(graph)),
      backend_(backend),
      options_(options),
      consumers_(Consumers(graph_)),
      judged_loss_(LossLayer(graph_)) {}

Tensor SerialTrainer::NewState(const ParameterSpec& spec, MemoryKind kind) {
  return backend_->arena().Zeros(DataType::kFloat32, Shape(spec.shape.begin(), spec.shape.end()),
                                 kind);
}

absl::Status SerialTrainer::MakeLayers() {
  parameters_.resize(NumSums() * options_.copies);
  for (const LayerSpec& spec : graph_.layers) {
    PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<Layer> layer, MakeLayer(spec));
    for (auto& of_layer : parameters_) of_layer.emplace_back();
    for (const ParameterSpec& p : spec.parameters) {
      Value& v = values_[ValueName(p)];
      if (v.value.empty()) {
        value_order_.push_back(ValueName(p));
        v.value =
            backend_->arena().Zeros(backend_->activation_type(),
                                    Shape(p.shape.begin(), p.shape.end()), MemoryKind::kParameter);
        const bool is_master = v.value.type() == DataType::kFloat32;
        v.master = is_master ? v.value : NewState(p, MemoryKind::kOptimizer);
        for (size_t i = 0; i < StateNames(options_.optimizer).size(); ++i) {
          v.state.push_back(NewState(p, MemoryKind::kOptimizer));
        }
        InitializeTensor(p, options_.seed, v.master);
      }
      for (auto& of_layer : parameters_) {
        v.gradients.push_back(NewState(p, MemoryKind::kGradient));
        of_layer.back().push_back({v.value, v.gradients.back()});
      }
    }
    layer->SetParameters(parameters_[0].back());
    std::vector<Tensor> statistics;
    for (const ParameterSpec& p : spec.statistics) {
      statistics.push_back(statistics_[p.name] = NewState(p, MemoryKind::kParameter));
      InitializeTensor(p, options_.seed, statistics.back());
    }
    layer->SetStatistics(std::move(statistics));
    layers_.push_back(std::move(layer));
  }
  TakeMasters();
  return absl::OkStatus();
}

void SerialTrainer::TakeMasters() {
  if (backend_->activation_type() == DataType::kFloat32) return;
  for (const auto& [name, v] : values_) backend_->Copy(v.master, v.value);
}

LayerContext SerialTrainer::ContextFor(int64_t step, int64_t first_sample, int64_t samples) const {
  LayerContext ctx;
  ctx.backend = backend_;
  ctx.step = step;
  ctx.first_sample = first_sample;
  ctx.samples = samples;
  ctx.seed = options_.seed;
  return ctx;
}

int SerialTrainer::PartialSum(int layer, int micro_batch) const {
  if (!options_.sums_of_stage.empty()) return options_.sums_of_stage[StageOf(layer)][micro_batch];
  return options_.sum_of_micro_batch.empty() ? 0 : options_.sum_of_micro_batch[micro_batch];
}

int SerialTrainer::NumSums() const {
  int most = 0;
  for (int layer = 0; layer < static_cast<int>(graph_.layers.size()); ++layer) {
    for (int m = 0; m < options_.num_micro_batches; ++m)
      most = std::max(most, PartialSum(layer, m));
  }
  return 1 + most;
}

void SerialTrainer::Bind(int micro_batch, int copy) {
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
    std::vector<Parameter> parameters =
        parameters_[PartialSum(i, micro_batch) * options_.copies + copy][i];
    const size_t version = stale() ? options_.staleness.version(StageOf(i), micro_batch) : 0;
    for (size_t k = 0; k < parameters.size(); ++k) {
      const Value& v = values_.at(ValueName(graph_.layers[i].parameters[k]));
      if (version < v.older.size()) parameters[k].value = v.older[version];
    }
    layers_[i]->SetParameters(std::move(parameters));
  }
}

void SerialTrainer::MicroBatch(int micro_batch, int copy) {
  const int64_t samples = options_.micro_batch_size / options_.copies;
  const int64_t first = micro_batch * options_.micro_batch_size + copy * samples;
  const int n = static_cast<int>(layers_.size());
  LayerContext ctx = ContextFor(step_, first, samples);
  ctx.loss_scale = 1.0f / static_cast<float>(UpdateSize() * options_.micro_batch_size *
                                             options_.data->targets_per_sample());
  ctx.loss_sum = &losses_[micro_batch];
  if (parameters_.size() > 1 || stale()) Bind(micro_batch, copy);
  struct Pass {  // of one slice
    std::vector<Tensor> outputs;
    std::vector<LayerStash> stashes;
  };
  std::vector<Pass> passes(slices_.size(),
                           Pass{std::vector<Tensor>(n), std::vector<LayerStash>(n)});
  std::vector<LayerStash> sequences(n);  // what the slices share
  for (size_t k = 0; k < slices_.size(); ++k) {
    ctx.slice = slices_[k];
    for (int i = 0; i < n; ++i) {
      ctx.sequence = &sequences[i];
      passes[k].outputs[i] =
          Forward(i, ctx, *options_.data, /*keep=*/true, &passes[k].stashes[i], &passes[k].outputs);
    }
  }
  for (size_t k = slices_.size(); k-- > 0;) {
    ctx.slice = slices_[k];
    std::vector<OutputGradient> gradients(n);
    for (int i = n - 1; i >= 0; --i) {
      ctx.sequence = &sequences[i];
      Backward(i, ctx, &passes[k].stashes[i], &passes[k].outputs, &gradients);
    }
  }
}

std::vector<Tensor> SerialTrainer::InputsOf(int layer, const std::vector<Tensor>& outputs) const {
  std::vector<Tensor> inputs;
  for (int input : graph_.layers[layer].inputs) inputs.push_back(outputs[input]);
  return inputs;
}

Tensor SerialTrainer::Forward(int layer, LayerContext ctx, const BatchSource& data, bool keep,
                              LayerStash* stash, std::vector<Tensor>* outputs) {
  const BatchView view = LoadData(graph_.layers[layer], data, &backend_->arena(), ctx.step,
                                  ctx.first_sample, ctx.samples, ctx.slice);
  ctx.batch = &view;
  if (!options_.norm_parts.empty()) ctx.norm_parts = options_.norm_parts[layer];
  double local_loss = 0;  // of a block that learns locally
  if (layer != judged_loss_) {
    ctx.loss_sum = &local_loss;
    ctx.predictions = nullptr;
  }
  Tensor y = layers_[layer]->Forward(ctx, InputsOf(layer, *outputs), stash);
  for (int input : graph_.layers[layer].inputs) {
    if (consumers_[input].back() != layer) continue;
    if (!keep || FirstReader(input) < 0) (*outputs)[input] = Tensor();
  }
  return y;
}

void SerialTrainer::Backward(int layer, LayerContext ctx, LayerStash* stash,
                             std::vector<Tensor>* outputs, std::vector<OutputGradient>* gradients) {
  const LayerSpec& spec = graph_.layers[layer];
  const BatchView view = LoadData(spec, *options_.data, &backend_->arena(), ctx.step,
                                  ctx.first_sample, ctx.samples, ctx.slice);
  ctx.batch = &view;
  if (!options_.norm_parts.empty()) ctx.norm_parts = options_.norm_parts[layer];
  std::vector<Tensor> inputs = InputsOf(layer, *outputs);
  if (options_.staleness.lag) {
    TakeLateGradients(layer, ctx.first_sample % options_.micro_batch_size, &(*gradients)[layer]);
  }
  std::vector<Tensor> shares =
      layers_[layer]->BackwardInput(ctx, inputs, SumOf(std::move((*gradients)[layer])), stash);
  layers_[layer]->BackwardWeight(ctx, inputs, stash);
  inputs.clear();
  for (size_t k = 0; k < shares.size(); ++k) {
    const int input = spec.inputs[k];
    if (FirstReader(input) == layer) (*outputs)[input] = Tensor();
    if (IsDetached(spec, input)) continue;
    OutputGradient& gradient = (*gradients)[input];
    if (StageOf(layer) != StageOf(input)) {
      AddTo(&gradient.of_stages[StageOf(layer)], std::move(shares[k]), backend_);
    } else if (HasOtherStages(input) || gradient.own.empty()) {
      gradient.own.push_back(std::move(shares[k]));
    } else {
      AddTo(&gradient.own[0], std::move(shares[k]), backend_);
    }
  }
}

void SerialTrainer::TakeLateGradients(int layer, int64_t row, OutputGradient* gradient) {
  for (auto& [stage, share] : gradient->of_stages) {
    const size_t lag = static_cast<size_t>(options_.staleness.lag(StageOf(layer), stage));
    std::deque<Tensor>& waiting = late_[{layer, stage, row}];
    if (waiting.empty()) {
      for (size_t i = 0; i < lag; ++i) {
        waiting.push_back(
            backend_->arena().Zeros(share.type(), share.shape(), MemoryKind::kActivation));
      }
    }
    waiting.push_back(std::move(share));
    share = std::move(waiting.front());
    waiting.pop_front();
  }
}

Tensor SerialTrainer::SumOf(OutputGradient gradient) {
  Tensor sum;
  for (auto& [stage, share] : gradient.of_stages) AddTo(&sum, std::move(share), backend_);
  for (Tensor& share : gradient.own) AddTo(&sum, std::move(share), backend_);
  return sum;
}

int SerialTrainer::FirstReader(int layer) const {
  for (int consumer : consumers_[layer]) {
    if (graph_.layers[consumer].input_use != InputUse::kForward) return consumer;
  }
  return -1;
}

int SerialTrainer::StageOf(int layer) const {
  return options_.stage_of_layer.empty() ? 0 : options_.stage_of_layer[layer];
}

bool SerialTrainer::HasOtherStages(int layer) const {
  for (int consumer : consumers_[layer]) {
    if (StageOf(consumer) != StageOf(layer)) return true;
  }
  return false;
}

void SerialTrainer::AddGradients(int update) {
  losses_.resize(options_.num_micro_batches);
  for (int i = update * UpdateSize(); i < (update + 1) * UpdateSize(); ++i) {
    losses_[i] = 0;
    for (int copy = 0; copy < options_.copies; ++copy) MicroBatch(i, copy);
  }
  const auto add = [this](const std::vector<Tensor>& all, size_t begin, size_t end, size_t stride) {
    for (size_t i = begin + stride; i < end; i += stride) {
      backend_->Add(all[begin], all[i], all[begin]);
    }
  };
  for (auto& [name, v] : values_) {
    const size_t n = v.gradients.size();
    // Ties between stages stay whole, and so do their sums.
    const bool sets = options_.shards > 0 && n == parameters_.size();
    const size_t set = sets ? options_.shards : n;
    for (size_t first = 0; first < n; first += set) add(v.gradients, first, first + set, 1);
    add(v.gradients, 0, n, set);
  }
}

absl::StatusOr<std::map<std::string, std::vector<float>>> SerialTrainer::LossGradients() {
  AddGradients(/*update=*/0);
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  std::map<std::string, std::vector<float>> gradients;
  for (auto& [name, v] : values_) {
    gradients[name] = HostValues(v.gradients[0]);
    for (const Tensor& g : v.gradients) backend_->Fill(g, 0);
  }
  return gradients;
}

void SerialTrainer::ClipGradients() {
  if (!options_.optimizer.needs_norm()) return;
  double squares = 0;
  for (const std::string& name : value_order_) {
    const Tensor& gradient = values_.at(name).gradients[0];
    squares += static_cast<float>(backend_->optimizer().SumOfSquares(gradient));
  }
  gradient_norm_ = std::sqrt(squares);
  const float factor = ClipFactorOf(options_.optimizer, squares);
  if (factor == 1) return;
  for (auto& [name, v] : values_) backend_->optimizer().Scale(v.gradients[0], factor);
}

void SerialTrainer::Update(int update) {
  for (auto& [name, v] : values_) {
    if (stale()) {
      v.older.push_back(
          backend_->arena().Zeros(v.value.type(), v.value.shape(), MemoryKind::kParameter));
      backend_->Copy(v.value, v.older.back());
    }
    OptimizerStep(options_.optimizer, step_ * Updates() + update + 1, v.master, v.gradients[0],
                  v.state, backend_);
    for (const Tensor& g : v.gradients) backend_->Fill(g, 0);
  }
  TakeMasters();
  for (const auto& layer : layers_) layer->EndStep(backend_);
}

absl::StatusOr<double> SerialTrainer::Step() {
  late_.clear();
  for (int update = 0; update < Updates(); ++update) {
    AddGradients(update);
    ClipGradients();
    Update(update);
  }
  ++step_;
  for (auto& [name, v] : values_) v.older.clear();
  for (size_t i = 0; i < layers_.size() && stale(); ++i)
    layers_[i]->SetParameters(parameters_[0][i]);
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  double sum = 0;
  for (double loss : losses_) sum += loss;
  return sum / static_cast<double>(options_.num_micro_batches * options_.micro_batch_size *
                                   options_.data->targets_per_sample());
}

void SerialTrainer::JudgeBy(int loss_layer) { judged_loss_ = loss_layer; }

absl::StatusOr<double> SerialTrainer::Evaluate(const BatchSource& data, int64_t step,
                                               int64_t first_sample, int64_t samples,
                                               std::vector<float>* predictions) {
  double loss = 0;
  LayerContext ctx = ContextFor(step, first_sample, samples);
  ctx.training = false;
  ctx.loss_sum = &loss;
  ctx.predictions = predictions;
  std::vector<Tensor> outputs(layers_.size());
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
    PIPELAB_RETURN_IF_ERROR(CheckData(graph_.layers[i], &data));
    LayerStash stash;
    outputs[i] = Forward(i, ctx, data, /*keep=*/false, &stash, &outputs);
  }
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  return loss / static_cast<double>(samples * data.targets_per_sample());
}

}  // namespace pipelab
