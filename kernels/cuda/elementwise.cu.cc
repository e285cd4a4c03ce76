// Kernels over single elements.
#include <cmath>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/philox.h"

namespace pipelab {
namespace gpu {
namespace {

constexpr float kGeluSlope = 0.7978845608028654f;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715f;

// (1 + tanh u) / 2 as 1 / (1 + e^-2u), which keeps its digits where it is small.
PIPELAB_DEVICE inline float GeluGate(float x) {
  return 1.0f / (1.0f + expf(-2.0f * kGeluSlope * (x + kGeluCubic * x * x * x)));
}

// (1 + erf(x / sqrt(2))) / 2.
PIPELAB_DEVICE inline float ExactGate(float x) { return 0.5f * erfcf(-0.70710678f * x); }

// What dropout makes of element i.
PIPELAB_DEVICE inline float Kept(const DropoutNumbers& d, float scale, int64_t i, float value) {
  const float uniform = RandomUniform(d.seed, d.stream, d.offset + static_cast<uint64_t>(i));
  return uniform >= d.rate ? value * scale : 0.0f;
}

}  // namespace

template <class T>
void Gelu(Queue& queue, GeluForm form, const T* x, int64_t n, T* y) {
  if (form == GeluForm::kErf) {
    Map(queue, "GeluErf", n, x, y,
        [=] PIPELAB_DEVICE(int64_t, float v) { return v * ExactGate(v); });
    return;
  }
  Map(queue, "Gelu", n, x, y, [=] PIPELAB_DEVICE(int64_t, float v) { return v * GeluGate(v); });
}

// d(x g) = g + x g (1 - g) 2 u', where g is the gate.
template <class T>
void GeluGradient(Queue& queue, GeluForm form, const T* dy, const T* x, int64_t n, T* dx) {
  if (form == GeluForm::kErf) {
    constexpr float kDensityAtZero = 0.39894228f;
    Map(queue, "GeluErfGradient", n, dy, x, dx, [=] PIPELAB_DEVICE(int64_t, float g, float z) {
      return g * (ExactGate(z) + z * kDensityAtZero * expf(-0.5f * z * z));
    });
    return;
  }
  Map(queue, "GeluGradient", n, dy, x, dx, [=] PIPELAB_DEVICE(int64_t, float g, float z) {
    const float gate = GeluGate(z);
    const float slope = 2.0f * kGeluSlope * (1.0f + 3.0f * kGeluCubic * z * z);
    // Far out, where z slope overflows, 1 - gate or gate is 0 and so is the product.
    const float change = gate * (1.0f - gate);
    return g * (gate + (change == 0.0f ? 0.0f : z * change * slope));
  });
}

namespace {

PIPELAB_DEVICE inline float GateOf(GateKind kind, float g) {
  return kind == GateKind::kSwish ? 1.0f / (1.0f + expf(-g)) : GeluGate(g);
}

}  // namespace

template <class T>
void Gate(Queue& queue, GateKind kind, const T* gu, int64_t m, int64_t f, T* y) {
  ForEach(queue, "Gate", m * f, [=] PIPELAB_DEVICE(int64_t i) {
    const int64_t at = i + i / f * f;  // rows of 2 f
    const float g = gu[at], u = gu[at + f];
    y[i] = g * GateOf(kind, g) * u;
  });
}

// As in GeluGradient: slope is that of the gate's argument, times 2 for the GELU.
template <class T>
void GateGradient(Queue& queue, GateKind kind, const T* dy, const T* gu, int64_t m, int64_t f,
                  T* dgu) {
  ForEach(queue, "GateGradient", m * f, [=] PIPELAB_DEVICE(int64_t i) {
    const int64_t at = i + i / f * f;
    const float g = gu[at], u = gu[at + f], d = dy[i], gate = GateOf(kind, g);
    const float slope =
        kind == GateKind::kSwish ? 1.0f : 2.0f * kGeluSlope * (1.0f + 3.0f * kGeluCubic * g * g);
    const float change = gate * (1.0f - gate);
    dgu[at] = d * u * (gate + (change == 0.0f ? 0.0f : g * change * slope));
    dgu[at + f] = d * (g * gate);
  });
}

template <class T>
void Relu(Queue& queue, const T* x, int64_t n, T* y) {
  Map(queue, "Relu", n, x, y, [=] PIPELAB_DEVICE(int64_t, float v) { return v < 0 ? 0.0f : v; });
}

template <class T>
void ReluGradient(Queue& queue, const T* dy, const T* y, int64_t n, T* dx) {
  Map(queue, "ReluGradient", n, dy, y, dx,
      [=] PIPELAB_DEVICE(int64_t, float g, float v) { return v <= 0 ? 0.0f : g; });
}

template <class T, class B>
void Add(Queue& queue, const T* a, const B* b, int64_t n, T* y) {
  Map(queue, "Add", n, a, b, y, [=] PIPELAB_DEVICE(int64_t, float v, float w) { return v + w; });
}

template <class T>
void Fill(Queue& queue, float value, int64_t n, T* x) {
  ForEach(queue, "Fill", n, [=] PIPELAB_DEVICE(int64_t i) { x[i] = value; });
}

template <class T>
void Scale(Queue& queue, float factor, int64_t n, T* x) {
  Map(queue, "Scale", n, static_cast<const T*>(x), x,
      [=] PIPELAB_DEVICE(int64_t, float v) { return factor * v; });
}

template <class From, class To>
void Convert(Queue& queue, const From* from, int64_t n, To* to) {
  Map(queue, "Convert", n, from, to, [=] PIPELAB_DEVICE(int64_t, float v) { return v; });
}

template <class From, class To>
void CopyColumns(Queue& queue, const From* from, int64_t from_width, int64_t rows, int64_t columns,
                 To* to, int64_t to_width) {
  ForEach(queue, "CopyColumns", rows * columns, [=] PIPELAB_DEVICE(int64_t i) {
    const int64_t row = i / columns, column = i % columns;
    to[row * to_width + column] = from[row * from_width + column];
  });
}

template <class T>
void AddBias(Queue& queue, const T* b, int64_t m, int64_t n, T* y) {
  Map(queue, "AddBias", m * n, static_cast<const T*>(y), y,
      [=] PIPELAB_DEVICE(int64_t i, float v) { return v + b[i % n]; });
}

template <class T>
void Dropout(Queue& queue, const T* a, const T* x, const DropoutNumbers& numbers, int64_t n, T* y) {
  const DropoutNumbers d = numbers;
  const float scale = 1.0f / (1.0f - d.rate);
  if (a == nullptr) {
    Map(queue, "Dropout", n, x, y,
        [=] PIPELAB_DEVICE(int64_t i, float v) { return Kept(d, scale, i, v); });
  } else {
    Map(queue, "Dropout", n, a, x, y,
        [=] PIPELAB_DEVICE(int64_t i, float u, float v) { return u + Kept(d, scale, i, v); });
  }
}

// An angle in double, less its whole turns, in float: angles of long texts are large.
template <class T>
void Rotate(Queue& queue, const RotaryNumbers& numbers, T* x) {
  const RotaryNumbers r = numbers;
  const int64_t half = r.head_size / 2;
  ForEach(queue, "Rotate", r.rows * r.heads * half, [=] PIPELAB_DEVICE(int64_t i) {
    constexpr double kTurn = 6.283185307179586;
    const int64_t pair = i % half, head = i / half % r.heads, row = i / half / r.heads;
    const double token = static_cast<double>(r.first_token + row % r.tokens);
    const double angle = token * exp(-2.0 * static_cast<double>(pair) /
                                     static_cast<double>(r.head_size) * r.log_base);
    const float rest = static_cast<float>(angle - kTurn * floor(angle / kTurn));
    const float c = cosf(rest), s = r.sign * sinf(rest);
    T* const at = x + row * r.columns + head * r.head_stride + pair;
    const float a = at[0], b = at[half];
    at[0] = a * c - b * s;
    at[half] = a * s + b * c;
  });
}

template <class T>
void ShareHead(Queue& queue, const T* x, int64_t rows, int64_t size, int64_t heads, int64_t columns,
               T* y) {
  ForEach(queue, "ShareHead", rows * heads * size, [=] PIPELAB_DEVICE(int64_t i) {
    const int64_t row = i / size, d = i % size;
    y[row * columns + d] = x[row / heads * size + d];
  });
}

template <class T>
void ShareHeadGradient(Queue& queue, const T* dy, int64_t rows, int64_t size, int64_t heads,
                       int64_t columns, T* dx) {
  ForEach(queue, "ShareHeadGradient", rows * size, [=] PIPELAB_DEVICE(int64_t i) {
    const T* const first = dy + i / size * heads * columns + i % size;
    float sum = 0.0f;
    for (int64_t h = 0; h < heads; ++h) sum += first[h * columns];
    dx[i] = sum;
  });
}

// The types of activations.
#define PIPELAB_MAKE(T)                                                                      \
  template void Gelu(Queue&, GeluForm, const T*, int64_t, T*);                               \
  template void GeluGradient(Queue&, GeluForm, const T*, const T*, int64_t, T*);             \
  template void Gate(Queue&, GateKind, const T*, int64_t, int64_t, T*);                      \
  template void GateGradient(Queue&, GateKind, const T*, const T*, int64_t, int64_t, T*);    \
  template void Rotate(Queue&, const RotaryNumbers&, T*);                                    \
  template void ShareHead(Queue&, const T*, int64_t, int64_t, int64_t, int64_t, T*);         \
  template void ShareHeadGradient(Queue&, const T*, int64_t, int64_t, int64_t, int64_t, T*); \
  template void Relu(Queue&, const T*, int64_t, T*);                                         \
  template void ReluGradient(Queue&, const T*, const T*, int64_t, T*);                       \
  template void Add(Queue&, const T*, const T*, int64_t, T*);                                \
  template void Fill(Queue&, float, int64_t, T*);                                            \
  template void Scale(Queue&, float, int64_t, T*);                                           \
  template void CopyColumns(Queue&, const T*, int64_t, int64_t, int64_t, T*, int64_t);       \
  template void AddBias(Queue&, const T*, int64_t, int64_t, T*);                             \
  template void Dropout(Queue&, const T*, const T*, const DropoutNumbers&, int64_t, T*);
PIPELAB_MAKE(float)
PIPELAB_MAKE(BFloat16)
#undef PIPELAB_MAKE
template void Add(Queue&, const float*, const BFloat16*, int64_t, float*);
template void Convert(Queue&, const float*, int64_t, float*);
template void Convert(Queue&, const BFloat16*, int64_t, BFloat16*);
template void Convert(Queue&, const float*, int64_t, BFloat16*);
template void Convert(Queue&, const BFloat16*, int64_t, float*);
template void CopyColumns(Queue&, const float*, int64_t, int64_t, int64_t, BFloat16*, int64_t);

}  // namespace gpu
}  // namespace pipelab
