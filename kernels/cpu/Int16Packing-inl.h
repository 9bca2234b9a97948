// Packing of rows into panels of 16-bit integers: Int16Types.h.

#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/Int16Types.h"
#include "kernels/cpu/Packing-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_INT16PACKING_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_INT16PACKING_INL_H_
#undef FAISS_BITS_KERNELS_CPU_INT16PACKING_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_INT16PACKING_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// A row as integers: components are about `unit` times these.
struct Int16Row {
    float unit = 0;    ///< 0 where the row is zero or cannot be rounded; or NaN
    float squares = 0; ///< |x|^2
    /// |x - unit X|^2 / |x|^2 of the integers X; infinity for a row that they
    /// cannot stand for. A row with NaN: 0, as it is in no result.
    double share = 0;
};

/// Integers of a row that is stored: whole blocks of the transposition.
inline idx_t int16Stride(int depth) {
    return roundUp(depth, std::max(8, lanesOf<float>()));
}

/// What a row is multiplied by, a power of two: components fit into 16 bits,
/// and the length of the integers is below sqrt(2^31), by as much as rounding
/// may add to it with 2^22 components.
inline float int16Units(float squares, float largest) {
    constexpr float kLength = 44900, kLargest = 32767;
    const float most =
            std::min(kLength / std::sqrt(squares), kLargest / largest);
    return std::bit_cast<float>(std::bit_cast<uint32_t>(most) & 0x7f800000u);
}

/// Rounds a row into `to` [int16Stride], zeros behind it.
inline Int16Row roundRow(const float* row, int depth, int16_t* to) {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> di;
    const hn::Rebind<int16_t, decltype(d)> dh;
    constexpr int kLanes = lanesOf<float>();
    // Squares that are far enough from the ends of float32.
    constexpr float kLeast = 0x1p-100f, kMost = 0x1p100f;
    const int whole = depth / kLanes * kLanes;
    HWY_ALIGN float end[kLanes] = {};
    std::copy(row + whole, row + depth, end);

    auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), largest = hn::Zero(d);
    int p = 0;
    for (; p + 2 * kLanes <= whole; p += 2 * kLanes) {
        const auto a = hn::LoadU(d, row + p),
                   b = hn::LoadU(d, row + p + kLanes);
        sum0 = hn::MulAdd(a, a, sum0);
        sum1 = hn::MulAdd(b, b, sum1);
        largest = hn::Max(largest, hn::Max(hn::Abs(a), hn::Abs(b)));
    }
    if (p < whole) {
        const auto a = hn::LoadU(d, row + p);
        sum0 = hn::MulAdd(a, a, sum0);
        largest = hn::Max(largest, hn::Abs(a));
    }
    const auto last = hn::Load(d, end);
    sum1 = hn::MulAdd(last, last, sum1);
    largest = hn::Max(largest, hn::Abs(last));
    Int16Row result;
    result.squares = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
    const float most = hn::GetLane(hn::MaxOfLanes(d, largest));
    if (!(result.squares >= kLeast && result.squares <= kMost)) {
        std::fill_n(to, int16Stride(depth), int16_t(0));
        if (std::isnan(result.squares)) {
            result.unit = result.squares;
        } else if (!(result.squares == 0 && most == 0)) {
            result.share = std::numeric_limits<double>::infinity();
        }
        return result;
    }

    const float units = int16Units(result.squares, most);
    const auto scale = hn::Set(d, units);
    auto left = hn::Zero(d);
    const auto round = [&](hn::Vec<decltype(d)> x, int16_t* at) HWY_ATTR {
        // The product and the difference are exact.
        const auto scaled = hn::Mul(x, scale);
        const auto integers = hn::NearestInt(scaled);
        const auto rest = hn::Sub(scaled, hn::ConvertTo(d, integers));
        left = hn::MulAdd(rest, rest, left);
        hn::StoreU(hn::DemoteTo(dh, integers), dh, at);
    };
    for (p = 0; p < whole; p += kLanes) {
        round(hn::LoadU(d, row + p), to + p);
    }
    const idx_t stride = int16Stride(depth);
    if (p < stride) {
        round(last, to + p);
        std::fill(
                to + std::min<idx_t>(p + kLanes, stride),
                to + stride,
                int16_t(0));
    }
    (void)di;
    result.unit = 1 / units;
    result.share = double(hn::GetLane(hn::SumOfLanes(d, left))) /
            (double(result.squares) * units * units);
    return result;
}

/// A panel of rows that were rounded.
inline void packInt16Panel(
        const int16_t* integers,
        idx_t stride,
        int pairs,
        float* to) {
    const hn::ScalableTag<float> d;
    constexpr int kLanes = lanesOf<float>();
    constexpr int kTile = tileVectors<float>();
    constexpr int kBlock = kBlockDepth<float>;
    const float* rows[kTile];
    for (int i = 0; i < kTile; ++i) {
        // Pairs as they are: nothing but moves of 32 bits follows.
        rows[i] = reinterpret_cast<const float*>(integers + i * stride);
    }
    for (int first = 0; first < kTile; first += kLanes) {
        const ListedRows<float> some{rows + first};
        for (int p = 0; p < pairs; p += kBlock) {
            hn::Vec<decltype(d)> out[kBlock];
            transposeBlocks(d, some, p, out);
            const int count = std::min(kBlock, pairs - p);
            for (int i = 0; i < count; ++i) {
                hn::Store(out[i], d, to + (p + i) * kTile + first);
            }
        }
    }
}

inline void packInt16Vectors(const PackJob<float>& job, KernelMetric) {
    constexpr int kTile = tileVectors<float>();
    const int pairs = int16PanelDepth(job.depth) - 1;
    const idx_t stride = int16Stride(job.depth);
    AlignedBuffer<int16_t> integers(kTile * stride);
    double share = 0;
    for (idx_t first = 0; first < job.count; first += kTile) {
        float* to = job.panels + first * (pairs + 1);
        for (int i = 0; i < kTile; ++i) {
            // Rows that are not there: the last one again.
            const idx_t row = std::min(first + i, job.count - 1);
            const float* from = job.rows.row(job.begin + row);
            const Int16Row rounded =
                    roundRow(from, job.depth, integers.get() + i * stride);
            job.terms[first + i] = rounded.squares;
            to[pairs * kTile + i] = rounded.unit;
            share = std::max(share, rounded.share);
        }
        packInt16Panel(integers.get(), stride, pairs, to);
    }
    *job.roundingShare = std::max(*job.roundingShare, share);
}

inline void packInt16Queries(const PackJob<float>& job, KernelMetric metric) {
    constexpr int kTile = tileQueries<float>();
    const int pairs = int16PanelDepth(job.depth) - 1;
    AlignedBuffer<int16_t> integers(int16Stride(job.depth));
    const float sign = metric == KernelMetric::L2 ? -2.0f : -1.0f;
    for (idx_t first = 0; first < job.count; first += kTile) {
        float* to = job.panels + first * (pairs + 1);
        const int count = int(std::min<idx_t>(kTile, job.count - first));
        if (count < kTile) {
            std::fill_n(to, (pairs + 1) * kTile, 0.0f);
        }
        for (int i = 0; i < count; ++i) {
            const Int16Row rounded = roundRow(
                    job.rows.row(job.begin + first + i),
                    job.depth,
                    integers.get());
            for (int p = 0; p < pairs; ++p) {
                std::memcpy(
                        to + p * kTile + i,
                        integers.get() + 2 * p,
                        sizeof(float));
            }
            to[pairs * kTile + i] = sign * rounded.unit;
            job.terms[first + i] =
                    metric == KernelMetric::L2 ? rounded.squares : 0;
        }
    }
}

inline double int16RoundingOf(const float* row, int depth) {
    AlignedBuffer<int16_t> integers(int16Stride(depth));
    const Int16Row rounded = roundRow(row, depth, integers.get());
    // A hundredth for the roundings of the sums, and what underflows in them.
    return std::sqrt(double(rounded.squares)) *
            (1.01 * std::sqrt(rounded.share) + 0x1p-40);
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
