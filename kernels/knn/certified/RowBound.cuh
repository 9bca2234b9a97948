/// The error bound of one query.
#pragma once

#include "kernels/knn/certified/CanonicalPair.cuh"
#include "kernels/knn/fused/tensor/TensorScanBound.h"

namespace faiss_bits {

/// Metrics whose approximations may overflow, or be off by more, where the
/// components are large, whatever the distance is: their bounds hold where no
/// vector is so large.
template <Metric kMetric>
constexpr bool kBoundedBySums = kMetric == Metric::Canberra ||
        kMetric == Metric::BrayCurtis || kMetric == Metric::JensenShannon ||
        kMetric == Metric::Jaccard || kMetric == Metric::Cosine;

template <Metric kMetric>
struct RowBound {
    ErrorBound bound;
    double norm = 0;     // |q|
    double residual = 0; // of the query that the candidates were found with
    double greatest = 0; // of all |x|: products alone
    // Of images: those of 16 bits that the candidates were found with; norms
    // are those of what they hold.
    bool ofImages = false;
    int d = 0;
    double imageResidual = 0; // of all vectors
    double imageNormError = 0;
    double longest = bounds::kInfinity; // of all vectors, where that counts: L2
    double greatestPower = 0; // Lp: of a difference that is surely in float32
    CenterProduct centerProduct;

    /// Most that the key of a vector at distance c, rounded to float32, may
    /// differ from its approximate key; infinity where the approximation may
    /// have overflowed, and for cosines of images.
    __device__ __forceinline__ double at(double c) const {
        constexpr double kSafe = 0x1p120;
        const double size = fabs(c);
        // Rounding the canonical distance, and this very computation.
        double error = size * 0x1p-22 + 0x1p-146 + bound.absolute;
        double greatestTerm;
        if (kMetric == Metric::Cosine && ofImages) {
            return __longlong_as_double(0x7ff0000000000000ll); // limitOf()
        }
        if (ofImages) {
            const double x = kMetric == Metric::InnerProduct
                    ? greatest
                    : fmin(norm + sqrt(size), longest);
            return error + centerProduct.error +
                    tensorScanError(
                            kMetric,
                            d,
                            norm,
                            residual,
                            x,
                            imageResidual,
                            imageNormError);
        }
        if constexpr (
                kMetric != Metric::L2 && kMetric != Metric::InnerProduct) {
            greatestTerm = size;
            error += bound.relative * size;
        } else if (bound.ofProducts) {
            greatestTerm = (norm + residual) * greatest;
            error += bound.relative * size + bound.ofNorms * greatestTerm +
                    greatest * residual;
        } else {
            // |x - q'| <= |x - q| + |q - q'|, and |x| <= |q| + |x - q|.
            const double root = sqrt(size);
            const double reached = (root + residual) * (root + residual);
            const double lengths = 2 * norm + residual + root;
            error += bound.relative * reached +
                    residual * (2 * root + residual) +
                    bound.ofNorms * lengths * lengths;
            greatestTerm = bound.ofNorms > 0 ? lengths * lengths : reached;
        }
        // Roots of differences are small where these are beyond float32.
        const double safe = kMetric == Metric::Lp ? greatestPower : kSafe;
        return greatestTerm <= safe
                ? error
                : __longlong_as_double(0x7ff0000000000000ll);
    }

    /// Most that the key of a scan is for a vector whose key, rounded to
    /// float32, is at most `key`. Scans of images have keys of their own: for
    /// inner products less <c, q>, for cosines 2 - 2 cos.
    __device__ __forceinline__ double limitOf(double key) const {
        if (kMetric == Metric::Cosine && ofImages) {
            return cosineScanLimit(
                    d, key, norm, residual, imageResidual, imageNormError);
        }
        return key + at(key) + centerProduct.value;
    }

    /// No vector whose key is `key` or more has an approximate key below this.
    /// Near zero, c - at(c) does not grow with c: its least value, for L2, is
    /// above -4 at(0), and from c = 2 at(0) on it grows.
    __device__ __forceinline__ double leastFrom(double key, double error)
            const {
        const double atZero = at(0);
        return fabs(key) < 4 * atZero ? -5 * atZero + fmin(key, 0.0) - error
                                      : key - error;
    }
};

/// The bound where candidates were found with images.
template <Metric kMetric>
__device__ __forceinline__ RowBound<kMetric> imageBound(
        const CertifiedParams& params,
        uint32_t row) {
    // Sums of squares in float32, of at most 2^22 components, and their roots.
    const double up = 1 + (params.d + 16) * 0x1p-24;
    RowBound<kMetric> result;
    result.bound = params.bound;
    result.ofImages = true;
    result.d = params.d;
    result.norm = sqrt(double(params.queryNorms[row]) + 0x1p-120) * up;
    result.residual = double(params.queryResiduals[row]);
    result.imageResidual = double(params.imageFacts->residual);
    result.imageNormError = double(params.imageFacts->normError);
    result.greatest = double(params.imageFacts->greatestLength);
    if (params.centerProducts) {
        result.centerProduct = params.centerProducts[row];
    }
    return result;
}

/// The bound of a row: the norms are computed by the whole block. `shared` has
/// room for two values a warp. Begins and ends with the block in step.
template <Metric kMetric, int Threads>
__device__ __forceinline__ RowBound<kMetric> rowBound(
        const CertifiedParams& params,
        uint32_t row,
        double* shared) {
    if (params.imageFacts) {
        return imageBound<kMetric>(params, row);
    }
    const float* q = params.queries + int64_t(row) * params.d;
    const float* rounded = params.roundedQueries
            ? params.roundedQueries + int64_t(row) * params.d
            : q;
    double squares[2] = {}; // or a sum of sizes in the second
    for (int c = threadIdx.x; c < params.d; c += Threads) {
        const double exact = q[c];
        const double off = exact - double(rounded[c]);
        squares[0] += exact * exact;
        squares[1] += kBoundedBySums<kMetric> ? fabs(exact) : off * off;
    }
    constexpr int kWarps = Threads / kWarpSize;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int distance = kWarpSize / 2; distance >= 1; distance /= 2) {
            squares[i] += __shfl_xor_sync(kFullWarp, squares[i], distance);
        }
        if (threadIdx.x % kWarpSize == 0) {
            shared[i * kWarps + threadIdx.x / kWarpSize] = squares[i];
        }
    }
    __syncthreads();
    squares[0] = squares[1] = 0;
    for (int w = 0; w < kWarps; ++w) {
        squares[0] += shared[w];
        squares[1] += shared[kWarps + w];
    }
    __syncthreads();
    // What the sums and roots here are rounded by.
    constexpr double kUp = 1 + 0x1p-30;
    RowBound<kMetric> result;
    result.bound = params.bound;
    result.norm = sqrt(squares[0]) * kUp;
    result.residual = kBoundedBySums<kMetric> ? 0.0 : sqrt(squares[1]) * kUp;
    if constexpr (kBoundedBySums<kMetric>) {
        const double sumOfQuery = squares[1] * kUp;
        const double sumOfVector = params.maxima->sum;
        if (kMetric == Metric::JensenShannon) {
            result.bound = errorBound(
                    kMetric,
                    params.metricArg,
                    params.d,
                    sumOfVector,
                    sumOfQuery);
        }
        if (!(sumOfQuery + 2 * sumOfVector < 0x1p120)) {
            result.bound.absolute = bounds::kInfinity;
        }
    }
    if constexpr (kMetric == Metric::Lp) {
        result.greatestPower = exp2(120 * fmin(double(params.metricArg), 1.0));
    }
    if (params.bound.ofProducts) {
        // A sum of squares in float32, of at most 2^22 components.
        result.greatest =
                sqrt(double(*params.greatestNorm) * 2 + 0x1p-100) * kUp;
    }
    return result;
}

} // namespace faiss_bits
