// Pooling and plain convolutions: kernels/reference/pooling.cc and convolution.cc, turned around so
// that each result is one thread's, which adds its terms in one order.
#include <cmath>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.h"

namespace pipelab {
namespace gpu {
namespace {

struct Pixel {
  int64_t sample, row, column;
};

PIPELAB_DEVICE inline Pixel PixelOf(int64_t index, int64_t height, int64_t width) {
  return {index / width / height, index / width % height, index % width};
}

// Calls visit(pixel of x) for the taps of output pixel p inside the image, row by row.
template <class Visit>
PIPELAB_DEVICE inline void ForEachTap(const Window& w, const Pixel& p, const Visit& visit) {
  for (int64_t ki = 0; ki < w.kernel_height; ++ki) {
    const int64_t row = p.row * w.stride_height + ki - w.pad_height;
    if (row < 0 || row >= w.height) continue;
    for (int64_t kj = 0; kj < w.kernel_width; ++kj) {
      const int64_t column = p.column * w.stride_width + kj - w.pad_width;
      if (column < 0 || column >= w.width) continue;
      visit((p.sample * w.height + row) * w.width + column, ki * w.kernel_width + kj);
    }
  }
}

// The other way: calls visit(output pixel, tap) for the windows with pixel p of x in them, in the
// order of output pixels.
template <class Visit>
PIPELAB_DEVICE inline void ForEachWindow(const Window& w, const Pixel& p, const Visit& visit) {
  for (int64_t ki = w.kernel_height - 1; ki >= 0; --ki) {
    const int64_t down = p.row + w.pad_height - ki;
    if (down < 0 || down % w.stride_height != 0 || down / w.stride_height >= w.out_height) {
      continue;
    }
    for (int64_t kj = w.kernel_width - 1; kj >= 0; --kj) {
      const int64_t right = p.column + w.pad_width - kj;
      if (right < 0 || right % w.stride_width != 0 || right / w.stride_width >= w.out_width) {
        continue;
      }
      visit(Pixel{p.sample, down / w.stride_height, right / w.stride_width},
            ki * w.kernel_width + kj);
    }
  }
}

// The pixel of the window's maximum in channel c: the first one; a NaN beats everything.
template <class T>
PIPELAB_DEVICE inline int64_t ArgMax(const Window& w, const Pixel& p, const T* x, int64_t channels,
                                     int64_t c) {
  int64_t best = -1;
  float most = 0.0f;
  ForEachTap(w, p, [&](int64_t pixel, int64_t) {
    const float value = x[pixel * channels + c];
    if (best < 0 || value > most || (value != value && most == most)) {
      best = pixel;
      most = value;
    }
  });
  return best;
}

PIPELAB_DEVICE inline float Divisor(const Window& w, const Pixel& p, bool count_padding) {
  if (count_padding) return static_cast<float>(w.kernel_height * w.kernel_width);
  int64_t inside = 0;
  ForEachTap(w, p, [&](int64_t, int64_t) { ++inside; });
  return static_cast<float>(inside);
}

}  // namespace

template <class T>
void MaxPool(Queue& queue, const Window& window, int64_t channels, const T* x, T* y) {
  const Window w = window;
  const int64_t pixels = w.samples * w.out_height * w.out_width;
  ForEach(queue, "MaxPool", pixels * channels, [=] PIPELAB_DEVICE(int64_t at) {
    const int64_t c = at % channels;
    const Pixel p = PixelOf(at / channels, w.out_height, w.out_width);
    y[at] = x[ArgMax(w, p, x, channels, c) * channels + c];
  });
}

template <class T>
void MaxPoolGradient(Queue& queue, const Window& window, int64_t channels, const T* dy, const T* x,
                     T* dx) {
  const Window w = window;
  ForEach(queue, "MaxPoolGradient", w.samples * w.height * w.width * channels,
          [=] PIPELAB_DEVICE(int64_t at) {
            const int64_t c = at % channels, pixel = at / channels;
            float sum = 0.0f;
            ForEachWindow(w, PixelOf(pixel, w.height, w.width), [&](const Pixel& out, int64_t) {
              if (ArgMax(w, out, x, channels, c) != pixel) return;
              const int64_t row = (out.sample * w.out_height + out.row) * w.out_width;
              sum += dy[(row + out.column) * channels + c];
            });
            dx[at] = sum;
          });
}

template <class T>
void AveragePool(Queue& queue, const Window& window, int64_t channels, bool count_padding,
                 const T* x, T* y) {
  const Window w = window;
  const int64_t pixels = w.samples * w.out_height * w.out_width;
  ForEach(queue, "AveragePool", pixels * channels, [=] PIPELAB_DEVICE(int64_t at) {
    const int64_t c = at % channels;
    const Pixel p = PixelOf(at / channels, w.out_height, w.out_width);
    float sum = 0.0f;
    ForEachTap(w, p, [&](int64_t pixel, int64_t) { sum += x[pixel * channels + c]; });
    y[at] = sum / Divisor(w, p, count_padding);
  });
}

template <class T>
void AveragePoolGradient(Queue& queue, const Window& window, int64_t channels, bool count_padding,
                         const T* dy, T* dx) {
  const Window w = window;
  ForEach(queue, "AveragePoolGradient", w.samples * w.height * w.width * channels,
          [=] PIPELAB_DEVICE(int64_t at) {
            const int64_t c = at % channels;
            float sum = 0.0f;
            ForEachWindow(
                w, PixelOf(at / channels, w.height, w.width), [&](const Pixel& out, int64_t) {
                  const int64_t row = (out.sample * w.out_height + out.row) * w.out_width;
                  sum += dy[(row + out.column) * channels + c] / Divisor(w, out, count_padding);
                });
            dx[at] = sum;
          });
}

template <class T>
void Convolution(Queue& queue, const Window& window, const Channels& channels, const T* x,
                 const T* w, const T* b, T* y) {
  const Window win = window;
  const Channels ch = channels;
  const int64_t pixels = win.samples * win.out_height * win.out_width;
  ForEach(queue, "Convolution", pixels * ch.out, [=] PIPELAB_DEVICE(int64_t at) {
    const int64_t o = at % ch.out;
    float sum = b == nullptr ? 0.0f : b[o];
    ForEachTap(win, PixelOf(at / ch.out, win.out_height, win.out_width),
               [&](int64_t pixel, int64_t tap) {
                 if (ch.depthwise) {
                   sum += x[pixel * ch.in + o] * w[tap * ch.out + o];
                   return;
                 }
                 for (int64_t c = 0; c < ch.in; ++c) {
                   sum += x[pixel * ch.in + c] * w[(tap * ch.in + c) * ch.out + o];
                 }
               });
    y[at] = sum;
  });
}

template <class T>
void ConvolutionInputGradient(Queue& queue, const Window& window, const Channels& channels,
                              const T* dy, const T* w, T* dx) {
  const Window win = window;
  const Channels ch = channels;
  ForEach(queue, "ConvolutionInputGradient", win.samples * win.height * win.width * ch.in,
          [=] PIPELAB_DEVICE(int64_t at) {
            const int64_t c = at % ch.in;
            float sum = 0.0f;
            ForEachWindow(win, PixelOf(at / ch.in, win.height, win.width),
                          [&](const Pixel& out, int64_t tap) {
                            const int64_t pixel =
                                (out.sample * win.out_height + out.row) * win.out_width +
                                out.column;
                            if (ch.depthwise) {
                              sum += dy[pixel * ch.out + c] * w[tap * ch.out + c];
                              return;
                            }
                            for (int64_t o = 0; o < ch.out; ++o) {
                              sum += dy[pixel * ch.out + o] * w[(tap * ch.in + c) * ch.out + o];
                            }
                          });
            dx[at] = sum;
          });
}

// A block an element of w: its threads share the samples and pixels.
template <class T>
void ConvolutionWeightGradient(Queue& queue, const Window& window, const Channels& channels,
                               const T* x, const T* dy, float* dw) {
  const Window win = window;
  const Channels ch = channels;
  const int64_t inputs = ch.depthwise ? 1 : ch.in;
  const int64_t pixels = win.samples * win.out_height * win.out_width;
  ForEachBlock(queue, "ConvolutionWeightGradient",
               win.kernel_height * win.kernel_width * inputs * ch.out, 0,
               [=] PIPELAB_DEVICE(Block & block, int64_t at) {
                 const int64_t o = at % ch.out, c = ch.depthwise ? o : at / ch.out % inputs;
                 const int64_t tap = at / ch.out / inputs;
                 const int64_t ki = tap / win.kernel_width, kj = tap % win.kernel_width;
                 const float sum = block.Sum(pixels, [&](int64_t out) {
                   const Pixel p = PixelOf(out, win.out_height, win.out_width);
                   const int64_t row = p.row * win.stride_height + ki - win.pad_height;
                   const int64_t column = p.column * win.stride_width + kj - win.pad_width;
                   if (row < 0 || row >= win.height || column < 0 || column >= win.width)
                     return 0.0f;
                   const int64_t pixel = (p.sample * win.height + row) * win.width + column;
                   return x[pixel * ch.in + c] * dy[out * ch.out + o];
                 });
                 block.ForEach(1, [&](int64_t) { dw[at] += sum; });
               });
}

template <class T>
void WeightsToLibrary(Queue& queue, const T* w, int64_t taps, int64_t in, int64_t out, T* to) {
  ForEach(queue, "WeightsToLibrary", taps * in * out, [=] PIPELAB_DEVICE(int64_t at) {
    const int64_t c = at % in, tap = at / in % taps, o = at / in / taps;
    to[at] = w[(tap * in + c) * out + o];
  });
}

template <class T>
void AddWeightsOfLibrary(Queue& queue, const T* from, int64_t taps, int64_t in, int64_t out,
                         float* w) {
  ForEach(queue, "AddWeightsOfLibrary", taps * in * out, [=] PIPELAB_DEVICE(int64_t at) {
    const int64_t o = at % out, c = at / out % in, tap = at / out / in;
    w[at] += from[(o * taps + tap) * in + c];
  });
}

// The types of activations.
#define PIPELAB_MAKE(T)                                                                           \
  template void MaxPool(Queue&, const Window&, int64_t, const T*, T*);                            \
  template void MaxPoolGradient(Queue&, const Window&, int64_t, const T*, const T*, T*);          \
  template void AveragePool(Queue&, const Window&, int64_t, bool, const T*, T*);                  \
  template void AveragePoolGradient(Queue&, const Window&, int64_t, bool, const T*, T*);          \
  template void Convolution(Queue&, const Window&, const Channels&, const T*, const T*, const T*, \
                            T*);                                                                  \
  template void ConvolutionInputGradient(Queue&, const Window&, const Channels&, const T*,        \
                                         const T*, T*);                                           \
  template void ConvolutionWeightGradient(Queue&, const Window&, const Channels&, const T*,       \
                                          const T*, float*);                                      \
  template void WeightsToLibrary(Queue&, const T*, int64_t, int64_t, int64_t, T*);                \
  template void AddWeightsOfLibrary(Queue&, const T*, int64_t, int64_t, int64_t, float*);
PIPELAB_MAKE(float)
PIPELAB_MAKE(BFloat16)
#undef PIPELAB_MAKE

}  // namespace gpu
}  // namespace pipelab
