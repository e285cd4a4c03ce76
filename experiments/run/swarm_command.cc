// pipelab swarm: trains a GPT on peers that come and go (docs/elastic.md).
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "experiments/commands/token_file.h"
#include "experiments/flags/option_checks.h"
#include "experiments/run/run_commands.h"
#include "experiments/training/checkpoint.h"
#include "experiments/training/optimizer_flags.h"
#include "experiments/training/text_model.h"
#include "models/data/text_batches.h"
#include "models/data/text_corpus.h"
#include "models/zoo/gpt.h"
#include "pipelines/swarm/coordinator.h"
#include "pipelines/swarm/grpc_link.h"
#include "pipelines/swarm/peer.h"
#include "pipelines/swarm/swarm_log.h"
#include "pipelines/swarm/trainer.h"
#include "tools/base/file.h"
#include "tools/base/rng.h"
#include "tools/base/secret.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(std::string, token_file);  // token_file.cc
ABSL_DECLARE_FLAG(int, steps);               // run_input.cc
ABSL_DECLARE_FLAG(uint64_t, seed);
ABSL_DECLARE_FLAG(int, layers);
ABSL_DECLARE_FLAG(int, heads);
ABSL_DECLARE_FLAG(int, wait_limit_s);
ABSL_DECLARE_FLAG(std::string, data);
ABSL_DECLARE_FLAG(std::string, checkpoint);
ABSL_DECLARE_FLAG(int, checkpoint_every);
ABSL_DECLARE_FLAG(int, micro_batches);         // schedule_input.cc
ABSL_DECLARE_FLAG(int64_t, micro_batch_size);  // step_input.cc
ABSL_DECLARE_FLAG(int, stages);                // plan_command.cc

ABSL_FLAG(int, hidden, 64, "width of the GPT");
ABSL_FLAG(int, context, 64, "tokens of a sample");
ABSL_FLAG(std::string, listen, "127.0.0.1:0", "own address, HOST:PORT; port 0: a free one");
ABSL_FLAG(std::string, coordinator, "", "the coordinator's address, HOST:PORT");
ABSL_FLAG(std::string, certificates, "",
          "folder with authority.pem, certificate.pem and key.pem, for TLS on both sides");
ABSL_FLAG(std::string, log, "", "file to which the coordinator adds its events; empty: none");
ABSL_FLAG(bool, order_free, true, "exact sums of gradients: the same bits whatever happens");
ABSL_FLAG(bool, eight_bits, false, "activations and their gradients travel in 8 bits a value");
ABSL_FLAG(int, update_delay, 0,
          "1: a step's gradients are averaged while the next one runs on the weights before them");
ABSL_FLAG(int, rebalance_s, 0, "seconds between moves of a peer to the busiest stage; 0: no moves");
ABSL_FLAG(bool, train, true, "the coordinator's process is a trainer, too");
ABSL_FLAG(int, local_peers, 0, "peers in the coordinator's process, to try things out");
ABSL_FLAG(int, in_flight, 12, "micro-batches that a trainer has under way");
ABSL_FLAG(double, speed, 1, "of this peer, a multiple of the others', until it is measured");
ABSL_FLAG(int, least_pass_ms, 0,
          "a forward takes this peer at least so long, and a backward 2.5 times, for trials");

namespace pipelab {
namespace {

constexpr int64_t kSyntheticBytes = int64_t{1} << 20;

// With the option in front that it is about.
absl::Status About(absl::string_view option, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(option, status.message()));
}

absl::Duration Patience() { return absl::Seconds(2 * absl::GetFlag(FLAGS_wait_limit_s)); }

absl::StatusOr<SwarmAccess> AccessFromFlags(bool coordinates) {
  SwarmAccess access;
  const std::string folder = absl::GetFlag(FLAGS_certificates);
  const std::string token = absl::GetFlag(FLAGS_token_file);
  if (folder.empty() == token.empty()) {
    return absl::InvalidArgumentError(
        "swarm: needs --token_file=FILE (on one host) or --certificates=FOLDER, one of the two");
  }
  if (!folder.empty()) {
    const std::string in = ResolveOutputPath(folder, "");
    PIPELAB_ASSIGN_OR_RETURN(access.authority, ReadFile(JoinPath(in, "authority.pem")));
    PIPELAB_ASSIGN_OR_RETURN(access.certificate, ReadFile(JoinPath(in, "certificate.pem")));
    PIPELAB_ASSIGN_OR_RETURN(access.key, ReadSecretFile(JoinPath(in, "key.pem")));
    return access;
  }
  if (coordinates) PIPELAB_RETURN_IF_ERROR(MakeTokenFile());
  PIPELAB_ASSIGN_OR_RETURN(access.token, TokenFromFlag());
  return access;
}

absl::StatusOr<TextData> DataFromFlags() {
  const std::string file = absl::GetFlag(FLAGS_data);
  TextCorpus corpus = SyntheticCorpus(kSyntheticBytes, absl::GetFlag(FLAGS_seed));
  if (!file.empty()) {
    corpus = TextCorpus();
    absl::StatusOr<std::string> text = ReadFile(ResolveOutputPath(file, ""));
    if (!text.ok()) return About("--data=", text.status());
    corpus.documents.push_back(*std::move(text));
  }
  const int context = absl::GetFlag(FLAGS_context);
  absl::StatusOr<TextData> data = MakeTextData(corpus, context, absl::GetFlag(FLAGS_seed));
  if (!data.ok()) return About(absl::StrCat("--context=", context, ": "), data.status());
  return data;
}

absl::StatusOr<std::string> CoordinatorFromFlags(const SwarmAccess& access) {
  const std::string address = absl::GetFlag(FLAGS_coordinator);
  const absl::Status may = CheckAccess(access, address);
  if (!address.empty() && !may.ok()) return About("--coordinator=", may);
  if (!address.empty()) return address;
  return absl::InvalidArgumentError(
      "swarm: needs --coordinator=HOST:PORT, which `pipelab swarm coordinate` prints");
}

absl::StatusOr<swarm::Job> JobFromFlags(const GptConfig& model) {
  const int steps = absl::GetFlag(FLAGS_steps);
  OptimizerOptions adam = OptimizerOptions::Adam({});
  PIPELAB_ASSIGN_OR_RETURN(const OptimizerOptions optimizer, OptimizerFromFlags(adam, steps));
  if (optimizer.kind != OptimizerKind::kAdam || optimizer.needs_norm()) {
    return absl::InvalidArgumentError("swarm: trains by --optimizer=adam without --clip_norm");
  }
  swarm::Job job = MakeJob(model, optimizer);
  const int stages = absl::GetFlag(FLAGS_stages);
  job.set_stages(stages == 0 ? 3 : stages);
  job.set_steps(steps);
  job.set_micro_batches(absl::GetFlag(FLAGS_micro_batches));
  PIPELAB_RETURN_IF_ERROR(
      CheckRange("--micro_batch_size", absl::GetFlag(FLAGS_micro_batch_size), 1, kMostSamples));
  job.set_micro_batch_size(static_cast<int>(absl::GetFlag(FLAGS_micro_batch_size)));
  job.set_seed(absl::GetFlag(FLAGS_seed));
  job.set_order_free(absl::GetFlag(FLAGS_order_free));
  job.set_eight_bits(absl::GetFlag(FLAGS_eight_bits));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--update_delay", absl::GetFlag(FLAGS_update_delay), 0, 1));
  job.set_delay(absl::GetFlag(FLAGS_update_delay));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--wait_limit_s", absl::GetFlag(FLAGS_wait_limit_s), 1, 3600));
  job.set_wait_ms(int64_t{1000} * absl::GetFlag(FLAGS_wait_limit_s));
  PIPELAB_RETURN_IF_ERROR(LayoutOf(job).status());
  return job;
}

// The options that decide the batches; the coordinator and every trainer must agree on them.
SwarmSettings DataSettings(const TextData& data) {
  SwarmSettings settings = {{"--context", absl::StrCat(absl::GetFlag(FLAGS_context))},
                            {"--seed", absl::StrCat(absl::GetFlag(FLAGS_seed))},
                            {"--data", "generated"}};
  if (absl::GetFlag(FLAGS_data).empty()) return settings;  // of the seed
  const std::vector<uint8_t>& tokens = data.train->tokens();
  const std::string text =
      absl::StrCat(TextModelSettings({}, data.vocabulary)["bytes"], " ",
                   absl::string_view(reinterpret_cast<const char*>(tokens.data()), tokens.size()));
  settings["--data"] = absl::StrFormat("text of %d bytes, %016x", tokens.size(), StableHash(text));
  return settings;
}

SwarmTrainerOptions TrainerFromFlags(const std::string& coordinator, const TextData& data) {
  SwarmTrainerOptions options;
  options.coordinator = coordinator;
  options.data = data.train.get();
  options.settings = DataSettings(data);
  options.trainer = static_cast<int>(getpid());
  options.in_flight = absl::GetFlag(FLAGS_in_flight);
  options.seed = absl::GetFlag(FLAGS_seed);
  options.patience = Patience();
  return options;
}

// Events to --log, where it is given; who is dropped or refused to stdout, too.
std::function<void(const std::string&)> LogTo(SwarmLogFile* file) {
  return [file](const std::string& line) {
    if (absl::StartsWith(line, "drop") || absl::StartsWith(line, "refuse")) {
      std::fputs(line.c_str(), stdout);
    }
    std::fflush(stdout);
    if (file != nullptr) file->Add(line);
  };
}

void PrintStep(const SwarmStep& step, int64_t steps) {
  if (step.step % 10 != 9 && step.step + 1 != steps) return;
  absl::PrintF("step %d  loss %.6f nats/token  %.3f s\n", step.step + 1, step.loss,
               absl::ToDoubleSeconds(step.time));
  std::fflush(stdout);
}

absl::StatusOr<CoordinatorOptions> CoordinatorOptionsFromFlags(const TextData& data) {
  GptConfig model;
  const int layers = absl::GetFlag(FLAGS_layers), heads = absl::GetFlag(FLAGS_heads);
  model.layers = layers == 0 ? 3 : layers;
  model.hidden = absl::GetFlag(FLAGS_hidden);
  model.heads = heads == 0 ? 2 : heads;
  model.tokens = absl::GetFlag(FLAGS_context);
  model.vocabulary = data.train->vocabulary();
  CoordinatorOptions options;
  PIPELAB_ASSIGN_OR_RETURN(options.job, JobFromFlags(model));
  options.settings = TextModelSettings(model, data.vocabulary);
  options.data = DataSettings(data);
  if (const std::string file = absl::GetFlag(FLAGS_checkpoint); !file.empty()) {
    options.checkpoint = ResolveOutputPath(file, "");
  }
  const int every = absl::GetFlag(FLAGS_checkpoint_every);
  if (every != 0) options.checkpoint_every = every;
  PIPELAB_RETURN_IF_ERROR(CheckRange("--checkpoint_every", options.checkpoint_every, 1, 1 << 30));
  PIPELAB_RETURN_IF_ERROR(
      CheckRange("--rebalance_s", absl::GetFlag(FLAGS_rebalance_s), 0, 1 << 30));
  options.rebalance_every = absl::Seconds(absl::GetFlag(FLAGS_rebalance_s));
  options.patience = Patience();
  options.epoch = absl::GetCurrentTimeNanos();
  options.write = [](const std::string& file, const TrainingState& state) {
    return WriteCheckpoint(
        file, state, absl::StrCat(" at step ", state.step, "; the same --checkpoint resumes it"));
  };
  options.on_step = [steps = options.job.steps()](const SwarmStep& s) { PrintStep(s, steps); };
  return options;
}

// A peer that listens.
class Peer {
 public:
  static absl::StatusOr<std::unique_ptr<Peer>> Start(const std::string& coordinator,
                                                     const SwarmAccess& access, SwarmLink* link) {
    SwarmPeerOptions options;
    options.coordinator = coordinator;
    options.speed = absl::GetFlag(FLAGS_speed);
    options.least_pass = absl::Milliseconds(absl::GetFlag(FLAGS_least_pass_ms));
    options.patience = Patience();
    auto made = std::make_unique<Peer>(link, options);
    const std::string any =
        absl::GetFlag(FLAGS_local_peers) > 0 ? "127.0.0.1:0" : absl::GetFlag(FLAGS_listen);
    auto started = SwarmServer::Start(any, access, &made->peer_);
    if (!started.ok()) return About("--listen=", started.status());
    made->server_ = *std::move(started);
    made->peer_.SetAddress(made->server_->address());
    return made;
  }
  Peer(SwarmLink* link, const SwarmPeerOptions& options) : peer_(link, options) {}
  ~Peer() {
    peer_.Stop();
    if (thread_.joinable()) thread_.join();
  }
  absl::Status Run() { return peer_.Run(); }
  void RunInThread() {
    thread_ = std::thread([this] { peer_.Run().IgnoreError(); });
  }

 private:
  SwarmPeer peer_;
  std::unique_ptr<SwarmServer> server_;
  std::thread thread_;
};

absl::Status Coordinate() {
  PIPELAB_RETURN_IF_ERROR(CheckRange("--local_peers", absl::GetFlag(FLAGS_local_peers), 0, 1000));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--in_flight", absl::GetFlag(FLAGS_in_flight), 1, 1000));
  PIPELAB_ASSIGN_OR_RETURN(const TextData data, DataFromFlags());
  PIPELAB_ASSIGN_OR_RETURN(CoordinatorOptions options, CoordinatorOptionsFromFlags(data));
  absl::optional<CheckpointFile> checkpoint;
  if (!options.checkpoint.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(
        checkpoint, CheckpointFile::Take("--checkpoint", options.checkpoint, /*group=*/nullptr));
  }
  std::unique_ptr<SwarmLogFile> log;
  if (const std::string path = absl::GetFlag(FLAGS_log); !path.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(log, SwarmLogFile::Open(ResolveOutputPath(path, "")));
  }
  options.log = LogTo(log.get());
  PIPELAB_ASSIGN_OR_RETURN(const SwarmAccess access, AccessFromFlags(/*coordinates=*/true));
  const std::unique_ptr<SwarmLink> link = MakeGrpcLink(access);
  PIPELAB_ASSIGN_OR_RETURN(auto coordinator, SwarmCoordinator::Create(link.get(), options));
  if (log != nullptr) PIPELAB_RETURN_IF_ERROR(log->status());  // of the first event, its start
  auto started = SwarmServer::Start(absl::GetFlag(FLAGS_listen), access, coordinator.get());
  if (!started.ok()) return About("--listen=", started.status());
  const std::unique_ptr<SwarmServer> server = *std::move(started);
  coordinator->SetAddress(server->address());
  const std::string how =
      access.tls()
          ? absl::StrCat("--certificates=", absl::GetFlag(FLAGS_certificates), " --listen=HOST:0")
          : absl::StrCat("--token_file=", absl::GetFlag(FLAGS_token_file));
  std::printf("A peer joins with:\npipelab swarm join --coordinator=%s %s\n",
              server->address().c_str(), how.c_str());
  std::fflush(stdout);
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < absl::GetFlag(FLAGS_local_peers); ++i) {
    PIPELAB_ASSIGN_OR_RETURN(peers.emplace_back(),
                             Peer::Start(server->address(), access, link.get()));
    peers.back()->RunInThread();
  }
  SwarmTrainer trainer(link.get(), TrainerFromFlags(server->address(), data));
  std::thread trains;
  if (absl::GetFlag(FLAGS_train)) trains = std::thread([&] { trainer.Run().IgnoreError(); });
  const absl::Status status = coordinator->Run();
  trainer.Stop();
  if (trains.joinable()) trains.join();
  if (!status.ok() || log == nullptr) return status;
  return log->status();
}

absl::Status Join() {
  PIPELAB_ASSIGN_OR_RETURN(const SwarmAccess access, AccessFromFlags(/*coordinates=*/false));
  PIPELAB_ASSIGN_OR_RETURN(const std::string coordinator, CoordinatorFromFlags(access));
  PIPELAB_RETURN_IF_ERROR(
      CheckRange("--least_pass_ms", absl::GetFlag(FLAGS_least_pass_ms), 0, 600'000));
  const std::unique_ptr<SwarmLink> link = MakeGrpcLink(access);
  PIPELAB_RETURN_IF_ERROR(CheckRange("--wait_limit_s", absl::GetFlag(FLAGS_wait_limit_s), 1, 3600));
  if (const double speed = absl::GetFlag(FLAGS_speed); !(speed > 0 && speed <= 1e6)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--speed=", speed, ": must be above 0 and at most 1000000"));
  }
  PIPELAB_ASSIGN_OR_RETURN(auto peer, Peer::Start(coordinator, access, link.get()));
  const absl::Status ran = peer->Run();
  return ran.ok() ? ran : About(absl::StrCat("--coordinator=", coordinator, ": "), ran);
}

absl::Status TrainSwarm() {
  PIPELAB_RETURN_IF_ERROR(CheckRange("--in_flight", absl::GetFlag(FLAGS_in_flight), 1, 1000));
  PIPELAB_ASSIGN_OR_RETURN(const TextData data, DataFromFlags());
  PIPELAB_ASSIGN_OR_RETURN(const SwarmAccess access, AccessFromFlags(/*coordinates=*/false));
  PIPELAB_ASSIGN_OR_RETURN(const std::string coordinator, CoordinatorFromFlags(access));
  const std::unique_ptr<SwarmLink> link = MakeGrpcLink(access);
  SwarmTrainer trainer(link.get(), TrainerFromFlags(coordinator, data));
  const absl::Status ran = trainer.Run();
  if (!ran.ok()) return About(absl::StrCat("--coordinator=", coordinator, ": "), ran);
  const SwarmTrainer::Traffic traffic = trainer.traffic();
  std::printf(
      "%lld passes, %lld asked again, %.3f s longest in vain, %lld bytes of values out, "
      "%lld back\n",
      static_cast<long long>(traffic.requests), static_cast<long long>(traffic.retries),
      traffic.longest_lost_s, static_cast<long long>(traffic.values_out),
      static_cast<long long>(traffic.values_back));
  return absl::OkStatus();
}

}  // namespace

absl::Status SwarmCommand(const Words& words) {
  if (words.size() == 2 && words[1] == "coordinate") return Coordinate();
  if (words.size() == 2 && words[1] == "join") return Join();
  if (words.size() == 2 && words[1] == "train") return TrainSwarm();
  return absl::InvalidArgumentError(
      absl::StrCat(words.size() < 2 ? "" : absl::StrCat("'", words.back(), "': "),
                   "swarm takes coordinate, join or train, one at a time"));
}

}  // namespace pipelab
