// What a stream teaches a pipeline whose gradients are late, beside learning each sample before the
// next one comes: real frames of a camera, which change slowly, and novels in their order, window
// by window and byte by byte, which do not.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<StreamLesson> lessons, FrameLessons(frames));
//   report.AddTable(LessonTable(lessons, CopyError(frames)));
//
// Both learn online: each sample is judged before it is learned from. Measured here, under scheme
// over_time on one device (online learning) and on four.
#ifndef PIPELAB_EXPERIMENTS_STREAMS_STREAM_LEARNING_H_
#define PIPELAB_EXPERIMENTS_STREAMS_STREAM_LEARNING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "models/data/camera_frames.h"
#include "models/data/text_stream.h"

namespace pipelab {

inline constexpr int kLateDevices = 4;

struct StreamLesson {
  std::string stream;     // "next frame", "next window", "next byte"
  std::string optimizer;  // "sgd"
  double learning_rate = 0;
  int samples = 0;  // of a pass
  // [pass] Mean loss over the stream: on one device, and on kLateDevices.
  std::vector<double> online, late;

  double gap(size_t pass) const { return late[pass] / online[pass] - 1; }
};

// With two optimizers at several learning rates, none of which is chosen by the result.
absl::StatusOr<std::vector<StreamLesson>> FrameLessons(const FrameStream& frames);
// The lessons of at most `samples` of a pass, or as many as the text has.
absl::StatusOr<std::vector<StreamLesson>> TextLessons(const TextStream& text, int samples);

// `copy_error`: CopyError of the frames.
Table LessonTable(const std::vector<StreamLesson>& lessons, double copy_error);
// The claims of all streams' lessons.
std::vector<Claim> LessonClaims(const std::vector<StreamLesson>& lessons);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_STREAMS_STREAM_LEARNING_H_
