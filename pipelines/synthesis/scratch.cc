#include <chrono>
#include <cstdio>
#include <cstdlib>
#include "pipelines/schedules/catalog.h"
#include "pipelines/synthesis/beam.h"
#include "pipelines/synthesis/bound.h"
#include "pipelines/synthesis/evaluate.h"
#include "pipelines/synthesis/exact.h"

using namespace pipelab;
double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
int main(int, char** argv) {
  int P = atoi(argv[1]), M = atoi(argv[2]), V = atoi(argv[3]); double k = atof(argv[4]); int uneq = atoi(argv[5]);
  int zig = atoi(argv[6]); long nodes = atol(argv[7]);
  SynthesisProblem p = UnitProblem(P, M, zig ? ZigZagDevices(P, V) : LoopedDevices(P, V));
  if (k > 0) p.limits.free.assign(P, Bytes((int64_t)(k * V)));
  if (uneq) { srand(uneq);
    for (int s = 0; s < p.stages(); ++s) { p.lengths.forward[s] = 80 + rand() % 40; p.lengths.backward_input[s] = 80 + rand() % 50; p.lengths.backward_weight[s] = 60 + rand() % 40; p.lengths.hop[s] = 5; } }
  if (!CheckProblem(p).ok()) { printf("%s\n", CheckProblem(p).ToString().c_str()); return 1; }
  double t = Now();
  Heads h = ComputeHeads(p, true);
  Bound b = BestBound(p, &h);
  printf("bound %ld %s  %.3f s\n", (long)b.value, ToText(b).c_str(), Now() - t);
  WordEvaluator e(p);
  int64_t best = kNoMakespan; OrderWords start;
  for (const char* name : {"1f1b", "zb_h1", "zb_h2", "zb1p", "zb2p", "zbv", "v_half", "v_min", "interleaved_zb1p", "dualpipev", "interleaved", "hanayo"}) {
    SchemeParams sp; sp.devices = P; sp.micro_batches = M;
    for (int64_t x : p.lengths.forward) sp.times.forward.push_back(Nanoseconds(x));
    for (int64_t x : p.lengths.backward_input) sp.times.backward_input.push_back(Nanoseconds(x));
    for (int64_t x : p.lengths.backward_weight) sp.times.backward_weight.push_back(Nanoseconds(x));
    sp.times.hop = {Nanoseconds(p.lengths.hop[0])};
    auto s = MakeSchedule(name, sp);
    if (!s.ok()) continue;
    auto w = WordsOf(p, *s);
    if (!w.ok()) continue;
    bool fits = true;
    for (int d = 0; d < P; ++d) fits &= IsWordOf(p, d, (*w)[d]);
    printf("%s %ld %s\n", name, (long)e.Makespan(*w), fits ? "fits" : "-");
    if (fits) { if (e.Makespan(*w) < best) start = *w; best = std::min(best, e.Makespan(*w)); }
  }
  for (int width : {1, 8, 64, 256}) {
    BeamOptions o; o.width = width;
    t = Now();
    OrderWords w = BeamSearch(p, h, o);
    double dt = Now() - t;
    if (w.empty()) { printf("beam %d stuck %.2f\n", width, dt); continue; }
    bool fits = true;
    for (int d = 0; d < P; ++d) fits &= IsWordOf(p, d, w[d]);
    int64_t l = e.Makespan(w);
    if (l < best) start = w;
    best = std::min(best, l);
    printf("beam %d: %ld %s gap %.2f %%  %.2f s\n", width, (long)l, fits ? "ok" : "BAD", 100.0 * (l - b.value) / l, dt);
  }
  if (nodes) {
    ExactOptions o; o.shorter_than = best; o.most_nodes = nodes; t = Now();
    auto r = SearchExactly(p, h, o);
    printf("exact: %s %ld nodes %ld  %.2f s\n", r.complete ? "complete" : "gave up", (long)r.makespan, (long)r.nodes, Now() - t);
  }
}
