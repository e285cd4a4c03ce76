// Problems by chance, and their shortest order by trying all. For tests.
#ifndef PIPELAB_PIPELINES_SYNTHESIS_SYNTHESIS_TESTING_H_
#define PIPELAB_PIPELINES_SYNTHESIS_SYNTHESIS_TESTING_H_

#include <cstdint>
#include <vector>

#include "pipelines/synthesis/problem.h"

namespace pipelab {

// Unequal times, messages, room for a few micro-batches; some are recomputed, some whole.
SynthesisProblem RandomProblem(uint64_t seed, int devices, int micro_batches,
                               std::vector<int> device_of_stage);

// The same with token slices, each with times and memory of its own; gradients of keys and values
// go from slice to slice. A fifth has no limit of memory.
SynthesisProblem RandomSlices(uint64_t seed, int devices, int micro_batches, int slices,
                              std::vector<int> device_of_stage);

// Every slice takes a unit and keeps 1.
SynthesisProblem UnitSlices(int devices, int micro_batches, int slices,
                            std::vector<int> device_of_stage);

// One stage at least may offload, with copies of unequal times, and none is recomputed. A quarter
// has no limit of memory.
SynthesisProblem RandomCopies(uint64_t seed, int devices, int micro_batches,
                              std::vector<int> device_of_stage);
// The same with slices, each with copies of its own; a part of what some keep is read later.
SynthesisProblem RandomSlicedCopies(uint64_t seed, int devices, int micro_batches, int slices,
                                    std::vector<int> device_of_stage);

// A problem of 8 devices: room for 4 of the 8 micro-batches in flight, and the first four may
// offload.
SynthesisProblem HalfRoom(int64_t copy, int micro_batches = 16);

// ns, over all words of all devices; kNoMakespan: none fits. `sent`: of those that send just these
// to the host.
int64_t ShortestOfAll(const SynthesisProblem& problem, const SentSet* sent = nullptr);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_SYNTHESIS_TESTING_H_
