#include "kernels/metric_space/cpu/RowDistances.h"

#include <cmath>

#include "kernels/canonical/Distance.h"

// GCC makes a function for each and picks one when the library is loaded. None
// of them fuses a product and a sum, so the bits are the same.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define BITS_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define BITS_CLONES
#endif

namespace faiss_bits::metric_space {

namespace {

using canonical::kSlots;

double joined(const double* s) {
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

BITS_CLONES
double distanceL2(const float* x, const float* q, int d) {
    double s[kSlots] = {};
    int i = 0;
    for (; i + kSlots <= d; i += kSlots) {
        for (int j = 0; j < kSlots; ++j) {
            const double t = double(x[i + j]) - double(q[i + j]);
            s[j] += t * t;
        }
    }
    for (int j = 0; i + j < d; ++j) {
        const double t = double(x[i + j]) - double(q[i + j]);
        s[j] += t * t;
    }
    return joined(s);
}

BITS_CLONES
double distanceL1(const float* x, const float* q, int d) {
    double s[kSlots] = {};
    int i = 0;
    for (; i + kSlots <= d; i += kSlots) {
        for (int j = 0; j < kSlots; ++j) {
            s[j] += std::fabs(double(x[i + j]) - double(q[i + j]));
        }
    }
    for (int j = 0; i + j < d; ++j) {
        s[j] += std::fabs(double(x[i + j]) - double(q[i + j]));
    }
    return joined(s);
}

BITS_CLONES
double distanceLinf(const float* x, const float* q, int d) {
    double s[kSlots] = {};
    int i = 0;
    for (; i + kSlots <= d; i += kSlots) {
        for (int j = 0; j < kSlots; ++j) {
            const double t = std::fabs(double(x[i + j]) - double(q[i + j]));
            s[j] = canonical::larger(s[j], t);
        }
    }
    for (int j = 0; i + j < d; ++j) {
        const double t = std::fabs(double(x[i + j]) - double(q[i + j]));
        s[j] = canonical::larger(s[j], t);
    }
    double most = s[0];
    for (int j = 1; j < kSlots; ++j) {
        most = canonical::larger(most, s[j]);
    }
    return most;
}

} // namespace

RowDistance rowDistanceOf(Metric metric) {
    switch (metric) {
        case Metric::L1:
            return [](const float* x, const float* q, int d) {
                return canonical::toFloat32(distanceL1(x, q, d));
            };
        case Metric::Linf:
            return [](const float* x, const float* q, int d) {
                return canonical::toFloat32(distanceLinf(x, q, d));
            };
        default:
            return [](const float* x, const float* q, int d) {
                return canonical::toFloat32(distanceL2(x, q, d));
            };
    }
}

bool isFinite(const float* x, int d) {
    for (int i = 0; i < d; ++i) {
        if (!std::isfinite(x[i])) {
            return false;
        }
    }
    return true;
}

} // namespace faiss_bits::metric_space
