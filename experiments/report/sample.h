// For the tests of this folder: small simulated runs and a report of them.
//
//   SampleRun run = SimulateSample("1f1b", 2, 2);    // CHECKs
//   Report report = SampleReport();
#ifndef PIPELAB_EXPERIMENTS_REPORT_SAMPLE_H_
#define PIPELAB_EXPERIMENTS_REPORT_SAMPLE_H_

#include <string>

#include "experiments/report/report.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

struct SampleRun {
  Program program;
  Trace trace;
};

// A forward takes 1 ms, a backward 2, a message 0.25 on its way, a stage's copy to the host 0.5.
SampleRun SimulateSample(const std::string& scheme, int devices, int micro_batches,
                         bool recompute = false);

// A forward takes 1 ms, a backward 2, and nothing else takes time.
SampleRun SimulateIdeal(const std::string& scheme, int devices, int micro_batches);

// The same spans as a run on too few cores might have shown: dispatch gaps, processor and library
// times.
Trace AsMeasured(const SampleRun& simulated);

// Fixed, so that files are equal on every machine.
Environment SampleEnvironment();
// Two schemes, a missing value, names that need escapes (<, >, &, quotes, commas).
Report SampleReport();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_SAMPLE_H_
