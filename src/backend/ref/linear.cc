#include "backend/ref/math.h"
#include "backend/ref/ref_ops.h"
#include "base/check.h"

namespace deepinfer::ref {

void linear_fp8(ThreadPool& pool, const ops::LinearFp8Args& a) {
  DI_CHECK(a.x.width == a.w.n_in);
  multiply_to_bf16(pool, decode_rows(a.x, a.n_rows), a.n_rows, a.w, a.y);
}

void linear_fp4(ThreadPool& pool, const ops::LinearFp4Args& a) {
  DI_CHECK(a.x.width == a.w.n_in);
  multiply_to_bf16(pool, decode_rows(a.x, a.n_rows), a.n_rows, a.w, a.y);
}

void linear_bf16(ThreadPool& pool, const ops::LinearBf16Args& a) {
  DI_CHECK((a.y == nullptr) != (a.y_f32 == nullptr));
  const std::vector<float> x = decode_rows(a.x, a.n_rows, a.w.n_in);
  if (a.y != nullptr) return multiply_to_bf16(pool, x, a.n_rows, a.w, a.y);
  multiply(pool, x, a.n_rows, a.w,
           [&](int64_t t, int64_t o, double sum) { a.y_f32[t * a.w.n_out + o] = static_cast<float>(sum); });
}

}  // namespace deepinfer::ref
