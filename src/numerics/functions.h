// Scalar functions of the model: the definition that vectorised forms are compared with. Evaluated as the model's own
// code does, every step rounded to binary32; exp and log1p are correctly rounded, so that the result does not depend on
// which float routines a libm picks for a CPU. Pure, any thread.
#pragma once

namespace deepinfer {

/// 1 / (1 + e^-x).
float sigmoid(float x);

/// x * sigmoid(x).
float silu(float x);

/// The router score sqrt(softplus(x)), where softplus is x above 20 and log1p(e^x) otherwise.
float softplus_sqrt(float x);

/// 1 / sqrt(x), as two rounded steps.
float inverse_sqrt(float x);

}  // namespace deepinfer
