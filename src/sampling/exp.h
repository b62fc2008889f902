// An exponential that compilers vectorise and that gives the same bits on every processor. Pure, any thread.
#pragma once

#include <bit>
#include <cstdint>

namespace deepinfer {

/// e^x for x <= 0 within 2 ulp; 0 below -708 (and for -infinity). NaN in, NaN out.
inline double exp_nonpositive(double x) {
  constexpr double kLog2E = 0x1.71547652b82fep+0;
  constexpr double kLn2High = 0x1.62e42fefa3800p-1;  // 40 bits: exact when multiplied by an exponent
  constexpr double kLn2Low = 0x1.ef35793c76730p-45;
  constexpr double kToInteger = 0x1.8p52;  // adding it leaves round(x) in the low bits
  const double bounded = x < -708.0 ? -708.0 : x;
  const double shifted = bounded * kLog2E + kToInteger;
  const double k = shifted - kToInteger;
  const double r = (bounded - k * kLn2High) - k * kLn2Low;  // |r| <= ln(2)/2
  double p = 1.0 / 479001600;                               // Taylor to r^12: remainder below 2^-52
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 1.0 / 2;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const double scale = std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) << 52) + (uint64_t{1023} << 52));
  const double y = p * scale;
  return x < -708.0 ? 0.0 : y;
}

}  // namespace deepinfer
