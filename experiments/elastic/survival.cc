#include "experiments/elastic/survival.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tools/base/file.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

constexpr int64_t kFirstSteps = 5;  // not counted in figures: peers still join
constexpr absl::Duration kLook = absl::Milliseconds(20);

int64_t NowMs() { return absl::ToUnixMillis(absl::Now()); }

// A child whose output goes to a file, and which dies with this process.
pid_t Start(const std::vector<std::string>& words, const std::string& output) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid(), child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  const int out = open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  setenv("OMP_NUM_THREADS", "1", 1);
  execv(argv[0], argv.data());
  _exit(127);
}

struct Peer {
  pid_t process = -1;
  int place = 0;
  int64_t begin = 0, end = 0;  // Unix ms; 0: it lives
};

class Runner {
 public:
  explicit Runner(const SurvivalOptions& options)
      : o_(options), rng_(options.seed, "swarm/survival"), port_(FirstPort()) {}
  ~Runner() {
    for (pid_t process : {coordinator_, trainer_}) Kill(process);
    for (auto& [port, peer] : peers_) Kill(peer.process);
    for (pid_t process : stalled_) Kill(process);
  }

  absl::StatusOr<SurvivalRun> Run();

 private:
  int FirstPort() const {  // below those that the system deals
    return 10'000 + static_cast<int>((o_.seed * 7919 + getpid() * 31) % 200) * 100;
  }
  std::string File(const std::string& name) const { return JoinPath(o_.folder, name); }
  void StartCoordinator();
  void StartTrainer();
  void StartPeer(int place);
  absl::Status Watch();
  void KillSome();
  void KillPeer(int port);
  static void Kill(pid_t process);
  static bool Ended(pid_t* process, int* status);
  absl::Status ReadLog(SurvivalRun* run) const;
  absl::StatusOr<double> LongestLost() const;

  const SurvivalOptions& o_;
  const CounterRng rng_;
  uint64_t draws_ = 0;
  int port_, coordinator_port_ = 0;
  pid_t coordinator_ = -1, trainer_ = -1;
  std::map<int, Peer> peers_;  // by port
  std::vector<pid_t> stalled_;
  std::vector<int64_t> kills_;
};

void Runner::StartCoordinator() {
  std::vector<std::string> words = {o_.pipelab,
                                    "swarm",
                                    "coordinate",
                                    "--notrain",
                                    absl::StrCat("--listen=127.0.0.1:", coordinator_port_),
                                    absl::StrCat("--token_file=", File("token")),
                                    absl::StrCat("--log=", File("log")),
                                    absl::StrCat("--checkpoint=", File("swarm.safetensors")),
                                    absl::StrCat("--data=", o_.text),
                                    absl::StrCat("--stages=", o_.stages),
                                    absl::StrCat("--steps=", o_.steps),
                                    absl::StrCat("--micro_batches=", o_.micro_batches),
                                    absl::StrCat("--wait_limit_s=", o_.wait_limit_s)};
  words.insert(words.end(), o_.job.begin(), o_.job.end());
  coordinator_ = Start(words, File("coordinator.out"));
}

void Runner::StartTrainer() {
  std::vector<std::string> words = {o_.pipelab,
                                    "swarm",
                                    "train",
                                    absl::StrCat("--coordinator=127.0.0.1:", coordinator_port_),
                                    absl::StrCat("--token_file=", File("token")),
                                    absl::StrCat("--data=", o_.text),
                                    absl::StrCat("--in_flight=", o_.in_flight),
                                    absl::StrCat("--wait_limit_s=", o_.wait_limit_s)};
  for (const std::string& word : o_.job) {  // the data's
    if (absl::StartsWith(word, "--context=") || absl::StartsWith(word, "--seed=")) {
      words.push_back(word);
    }
  }
  trainer_ = Start(words, File("trainer.out"));
}

void Runner::StartPeer(int place) {
  const int port = ++port_;
  Peer& peer = peers_[port];
  peer.place = place;
  peer.begin = NowMs();
  peer.process = Start(
      {o_.pipelab, "swarm", "join", absl::StrCat("--coordinator=127.0.0.1:", coordinator_port_),
       absl::StrCat("--token_file=", File("token")), absl::StrCat("--listen=127.0.0.1:", port),
       absl::StrCat("--wait_limit_s=", o_.wait_limit_s),
       absl::StrCat("--least_pass_ms=", o_.least_pass_ms[place % o_.least_pass_ms.size()]),
       absl::StrCat("--speed=", o_.speeds[place % o_.speeds.size()])},
      File(absl::StrCat("peer", port, ".out")));
}

void Runner::Kill(pid_t process) {
  if (process < 0) return;
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
}

bool Runner::Ended(pid_t* process, int* status) {
  if (*process < 0 || waitpid(*process, status, WNOHANG) != *process) return *process < 0;
  *process = -1;
  return true;
}

void Runner::KillPeer(int port) {
  Peer& peer = peers_.at(port);
  if (o_.stall) {
    kill(peer.process, SIGSTOP);
    stalled_.push_back(std::exchange(peer.process, -1));
  } else {
    Kill(std::exchange(peer.process, -1));
  }
  peer.end = NowMs();
  StartPeer(peer.place);
}

void Runner::KillSome() {
  kills_.push_back(NowMs());
  if (o_.kill_coordinator) {
    Kill(std::exchange(coordinator_, -1));
    StartCoordinator();
    return;
  }
  std::vector<int> living;
  for (const auto& [port, peer] : peers_) {
    if (peer.process >= 0) living.push_back(port);
  }
  for (int i = 0; i < o_.at_once && !living.empty(); ++i) {
    const auto victim =
        living.begin() + static_cast<std::ptrdiff_t>(rng_.Below(draws_++, living.size()));
    KillPeer(*victim);
    living.erase(victim);
  }
}

// Until the coordinator is done.
absl::Status Runner::Watch() {
  const absl::Time begin = absl::Now();
  const auto pause = [this] {
    return o_.least_pause + rng_.Uniform(draws_++) * (o_.most_pause - o_.least_pause);
  };
  absl::Time next = begin + pause();
  int status = 0;
  while (!Ended(&coordinator_, &status)) {
    absl::SleepFor(kLook);
    if (absl::Now() - begin > o_.limit) return absl::DeadlineExceededError("the swarm hangs");
    if (o_.most_pause > absl::ZeroDuration() && absl::Now() > next) {
      KillSome();
      next = absl::Now() + pause();
    }
    for (auto& [port, peer] : peers_) {
      if (peer.process < 0 || !Ended(&peer.process, &status)) continue;
      if (status == 0) continue;  // it was told that all is done
      peer.end = NowMs();
      return absl::InternalError(absl::StrCat("peer ", port, " ended with ", status, ": ",
                                              File(absl::StrCat("peer", port, ".out"))));
    }
  }
  if (status == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the coordinator ended with ", status, ": ", File("coordinator.out")));
}

absl::StatusOr<SurvivalRun> Runner::Run() {
  coordinator_port_ = ++port_;
  StartCoordinator();
  while (!PathExists(File("token"))) {
    int status = 0;
    if (Ended(&coordinator_, &status)) return absl::InternalError(File("coordinator.out"));
    absl::SleepFor(kLook);
  }
  StartTrainer();
  for (int i = 0; i < o_.peers; ++i) StartPeer(i);
  PIPELAB_RETURN_IF_ERROR(Watch());
  SurvivalRun run;
  run.kills = static_cast<int>(kills_.size());
  // A peer that came when all was done waits in vain for the coordinator: twice the limit.
  const absl::Time end = absl::Now() + absl::Seconds(2 * o_.wait_limit_s + 5);
  do {
    int status = 0;
    run.left = Ended(&trainer_, &status) ? 0 : 1;
    for (auto& [port, peer] : peers_) run.left += Ended(&peer.process, &status) ? 0 : 1;
    absl::SleepFor(kLook);
  } while (run.left > 0 && absl::Now() < end);
  PIPELAB_RETURN_IF_ERROR(ReadLog(&run));
  PIPELAB_ASSIGN_OR_RETURN(run.longest_lost_s, LongestLost());
  return run;
}

// As the trainer says at its end.
absl::StatusOr<double> Runner::LongestLost() const {
  PIPELAB_ASSIGN_OR_RETURN(const std::string said, ReadFile(File("trainer.out")));
  const std::vector<absl::string_view> words = absl::StrSplit(said, ' ');
  const auto at = std::find(words.begin(), words.end(), "longest");
  double seconds = 0;
  if (at - words.begin() >= 2 && absl::SimpleAtod(*(at - 2), &seconds)) return seconds;
  return absl::DataLossError(absl::StrCat(File("trainer.out"), ": says no longest wait"));
}

absl::Status Runner::ReadLog(SurvivalRun* run) const {
  PIPELAB_ASSIGN_OR_RETURN(const std::string log, ReadFile(File("log")));
  PIPELAB_ASSIGN_OR_RETURN(run->proof, CheckSwarmLog(log));
  const auto word = [](absl::string_view line, absl::string_view key) {
    const size_t at = line.rfind(absl::StrCat(" ", key, "="));
    if (at == absl::string_view::npos) return absl::string_view();
    const absl::string_view rest = line.substr(at + key.size() + 2);
    return rest.substr(0, rest.find(' '));
  };
  const auto number = [&](absl::string_view line, absl::string_view key) {
    int64_t value = 0;
    return absl::SimpleAtoi(word(line, key), &value) ? value : -1;
  };
  run->stage_speeds.resize(o_.stages);
  std::map<int64_t, int> port_of_peer;
  std::map<int, int64_t> first_gradient;  // by port
  std::map<int64_t, int64_t> end_of_step;
  std::vector<double> quiet;
  int64_t begin = -1, last = -1;
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    const int64_t t = number(line, "t");
    if (absl::StartsWith(line, "join ")) {
      const std::pair<absl::string_view, absl::string_view> address =
          absl::StrSplit(word(line, "address"), ':');
      int& port = port_of_peer[number(line, "peer")];
      const int64_t stage = number(line, "stage");
      if (!absl::SimpleAtoi(address.second, &port) || stage < 0 || stage >= o_.stages) continue;
      const auto peer = peers_.find(port);
      if (peer == peers_.end() || peer->second.end > 0) continue;
      run->stage_speeds[stage] += o_.speeds[peer->second.place % o_.speeds.size()];
    } else if (absl::StartsWith(line, "count ")) {
      if (begin < 0) begin = last = t;
      first_gradient.emplace(port_of_peer[number(line, "peer")], t);
    } else if (absl::StartsWith(line, "start ")) {
      last = t;
    } else if (absl::StartsWith(line, "step ")) {
      const int64_t step = number(line, "step");
      run->losses[step] = std::string(word(line, "loss"));
      end_of_step[step] = t;
      const double seconds = static_cast<double>(t - std::max(last, begin)) * 1e-3;
      const bool killed =
          std::any_of(kills_.begin(), kills_.end(), [&](int64_t k) { return k >= last && k <= t; });
      if (killed) run->worst_step_s = std::max(run->worst_step_s, seconds);
      if (!killed && step >= kFirstSteps) quiet.push_back(seconds);
      last = t;
    }
  }
  if (end_of_step.empty() || quiet.empty()) return absl::DataLossError("the log has too few steps");
  std::nth_element(quiet.begin(), quiet.begin() + quiet.size() / 2, quiet.end());
  run->median_step_s = quiet[quiet.size() / 2];
  run->time = absl::Milliseconds(last - begin);
  const auto warm = end_of_step.find(kFirstSteps - 1);
  if (warm != end_of_step.end() && last > warm->second) {
    run->warm_up = absl::Milliseconds(warm->second - begin);
    run->throughput = static_cast<double>((o_.steps - kFirstSteps) * o_.micro_batches) * 1e3 /
                      static_cast<double>(last - warm->second);
  }
  for (const auto& [port, peer] : peers_) {
    const auto first = first_gradient.find(port);
    if (first == first_gradient.end()) continue;
    if (peer.begin > begin) {
      run->worst_join_s =
          std::max(run->worst_join_s, static_cast<double>(first->second - peer.begin) * 1e-3);
    }
    PeerStay stay;
    stay.peer = peer.place;
    const int base = o_.least_pass_ms[0],
              own = o_.least_pass_ms[peer.place % o_.least_pass_ms.size()];
    if (own > 0) stay.speed = static_cast<double>(base) / own;
    stay.join = Milliseconds(std::max<int64_t>(0, first->second - begin));
    if (peer.begin <= begin) stay.join = Milliseconds(0);
    if (peer.end > 0) stay.leave = Milliseconds(std::max<int64_t>(1, peer.end - begin));
    if (stay.leave > stay.join) run->trace.stays.push_back(stay);
  }
  std::stable_sort(run->trace.stays.begin(), run->trace.stays.end(),
                   [](const PeerStay& a, const PeerStay& b) { return a.join < b.join; });
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SurvivalRun> RunSwarm(const SurvivalOptions& options) {
  return Runner(options).Run();
}

}  // namespace pipelab
