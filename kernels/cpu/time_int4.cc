// Times products with 4-bit weights for tools/bench/int4_peers.py:
//
//   time_int4 ROWS COLUMNS GROUP MATH BATCH THREADS COPIES
//
// MATH is int8, float32 or bfloat16. For each line of its input it goes once through all copies of
// the matrix, whose columns the threads divide, and prints the milliseconds of a product: by the
// clock, and of processor time. Each product waits for the one before, as layers do.
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cpu/int4/int4_call.h"
#include "kernels/cpu/int4_speed.h"
#include "kernels/int4_weights.h"

namespace pipelab {
namespace cpu {
namespace {

struct Sizes {
  Int4Shape shape;
  Int4Math math;
  int64_t batch;
  int threads, copies;
};

double ProcessSeconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// Threads that take the same turns: all reach Wait before any leaves it.
class Turns {
 public:
  explicit Turns(int threads) : threads_(threads) {}
  void Wait() {
    const int64_t turn = turn_.load();
    if (arrived_.fetch_add(1) + 1 == threads_) {
      arrived_ = 0;
      ++turn_;
      return;
    }
    while (turn_.load() == turn) std::this_thread::yield();
  }

 private:
  const int threads_;
  std::atomic<int> arrived_{0};
  std::atomic<int64_t> turn_{0};
};

void RunAll(const Sizes& s, const std::vector<std::unique_ptr<Int4Product>>& products) {
  const Int4Path path = Int4Paths(s.math).front();
  const int64_t panels = s.shape.panels();
  Turns turns(s.threads);
  std::unique_ptr<Int4Activations> x;
  const auto work = [&](int thread) {
    for (const auto& product : products) {
      const Int4Matrix matrix = MatrixOf(product->weights());
      turns.Wait();
      if (thread == 0) {
        x = std::make_unique<Int4Activations>(s.math, matrix, products[0]->x_MK(), s.batch);
      }
      turns.Wait();
      path.run(matrix, *x, panels * thread / s.threads, panels * (thread + 1) / s.threads,
               product->y_MN());
    }
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < s.threads; ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
}

bool Parse(int argc, char** argv, Sizes* s) {
  if (argc != 8) return false;
  s->shape = {std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3])};
  const std::string math = argv[4];
  if (math != "int8" && math != "float32" && math != "bfloat16") return false;
  s->math = math == "int8"      ? Int4Math::kInt8
            : math == "float32" ? Int4Math::kFloat32
                                : Int4Math::kBFloat16;
  s->batch = std::atoll(argv[5]);
  s->threads = std::atoi(argv[6]);
  s->copies = std::atoi(argv[7]);
  const int64_t group = s->shape.group;
  return s->shape.k > 0 && s->shape.n > 0 && (group == 32 || group == 64 || group == 128) &&
         s->batch > 0 && s->threads > 0 && s->copies > 0;
}

int Main(int argc, char** argv) {
  Sizes s;
  if (!Parse(argc, argv, &s)) {
    std::cerr << "usage: time_int4 ROWS COLUMNS 32|64|128 int8|float32|bfloat16 BATCH THREADS "
                 "COPIES\n";
    return 2;
  }
  std::vector<std::unique_ptr<Int4Product>> products;
  for (int i = 0; i < s.copies; ++i) {
    products.push_back(std::make_unique<Int4Product>(s.shape, s.batch));
  }
  RunAll(s, products);
  std::printf("%s\n", Int4Paths(s.math).front().name);
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const auto start = std::chrono::steady_clock::now();
    const double used = ProcessSeconds();
    RunAll(s, products);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    std::printf("%.6f %.6f\n", 1e3 * wall.count() / s.copies,
                1e3 * (ProcessSeconds() - used) / s.copies);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace cpu
}  // namespace pipelab

int main(int argc, char** argv) { return pipelab::cpu::Main(argc, argv); }
