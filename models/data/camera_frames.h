// Frames of a camera in their order: a stream that changes slowly. From Debian's package
// visp-images-data (GPL-2), sequence mire-2: 501 grey frames of 384 x 288.
//
//   PIPELAB_ASSIGN_OR_RETURN(FrameStream frames, FetchCameraFrames(DefaultDataCache(),
//                                                                  /*reduce=*/8));      // 48 x 36
//   NextFrameSource source(&frames);
//
// The task is the next frame. Grey levels are 0 to 1. Errors: see package_cache.h and pgm.h.
#ifndef PIPELAB_MODELS_DATA_CAMERA_FRAMES_H_
#define PIPELAB_MODELS_DATA_CAMERA_FRAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/data/example_source.h"
#include "models/data/package_cache.h"

namespace pipelab {

struct FrameStream {
  int64_t height = 0, width = 0;
  std::vector<float> levels;  // [frame, row, column]
  std::string end;            // one line where the last file ends in mid-picture; else empty

  int64_t pixels() const { return height * width; }  // of a frame
  int64_t size() const { return static_cast<int64_t>(levels.size()) / pixels(); }
};

// FOLDER/image.0001.pgm and on, up to the first number that is not there. Each pixel is the mean of
// `reduce` x `reduce`, which must divide the frames' sides. A last file that ends in mid-picture is
// left out (FrameStream::end). InvalidArgument names a frame of other sides, or says that there are
// less than two; DataLoss names another file that ends early.
absl::StatusOr<FrameStream> ReadFrames(const std::string& folder, int64_t reduce);

const DebianPackage& CameraFramesPackage();
absl::StatusOr<FrameStream> LoadCameraFrames(absl::string_view package_dir, int64_t reduce);
// From the cache, or through apt into the cache.
absl::StatusOr<FrameStream> FetchCameraFrames(absl::string_view cache_dir, int64_t reduce,
                                              const FetchOptions& options = {});

// The mean squared error of a pixel where each frame is taken for the next one.
double CopyError(const FrameStream& frames);

// Waves that move slowly, for tests.
FrameStream SyntheticFrames(int64_t frames, int64_t height, int64_t width);

// Sample t: "image" is frame t, [height, width, 1], and "targets" frame t + 1, [pixels]. In turn,
// and from the first again behind the last.
class NextFrameSource final : public ExampleSource {
 public:
  explicit NextFrameSource(const FrameStream* frames);  // must outlive the source

 private:
  void WriteFloats(int field, const Draw& draw, absl::Span<float> out) const override;

  const FrameStream* frames_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_CAMERA_FRAMES_H_
