// Packing of rows into panels of digits: ByteTypes.h.

#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cpu/ByteTypes.h"
#include "kernels/cpu/Canonical-inl.h"
#include "kernels/cpu/Packing-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_BYTEPACKING_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_BYTEPACKING_INL_H_
#undef FAISS_BITS_KERNELS_CPU_BYTEPACKING_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_BYTEPACKING_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// What stands behind the digits of a panel of kTile rows.
template <int kTile>
struct ByteExtras {
    explicit ByteExtras(float* panel, int steps)
            : at(panel + idx_t(steps) * kByteStep * kTile) {}

    double* squares() const {
        return values(0);
    }
    double* unit() const {
        return values(1);
    }
    double* largest() const {
        return values(2);
    }
    double* rest() const {
        return values(3);
    }
    const float** rows() const {
        return reinterpret_cast<const float**>(values(4));
    }
    int32_t* depth() const {
        return reinterpret_cast<int32_t*>(values(5));
    }
    double* share() const {
        return values(6);
    }
    double* dropped() const {
        return values(7);
    }
    double* values(int i) const {
        return reinterpret_cast<double*>(at) + i * kTile;
    }

    float* at;
};

/// The first `count` components of up to 16, zeros behind.
HWY_INLINE __m512 loadByteRow(const float* from, int count) {
    return _mm512_maskz_loadu_ps(
            count >= 16 ? __mmask16(0xffff) : __mmask16((1u << count) - 1),
            from);
}

/// A row on its way into a panel.
struct ByteRow {
    const float* row;
    float scale; ///< what it is multiplied by; 0: no integers stand for it
    __m512 left; ///< sums of what the integers leave of components
};

/// Fills the extras of place `i` with what needs no integers.
template <int kTile>
HWY_INLINE ByteRow measureRow(
        const float* row,
        int depth,
        const ByteExtras<kTile>& extras,
        int i) {
    // Far enough from the ends of float32.
    constexpr float kLeast = 0x1p-60f, kMost = 0x1p60f;
    __m512 largest = _mm512_setzero_ps();
    __m512d squares0 = _mm512_setzero_pd(), squares1 = _mm512_setzero_pd();
    for (int p = 0; p < depth; p += 16) {
        const __m512 x = loadByteRow(row + p, depth - p);
        largest = _mm512_max_ps(largest, _mm512_abs_ps(x));
        const __m512d a = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
        const __m512d b = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
        squares0 = _mm512_fmadd_pd(a, a, squares0);
        squares1 = _mm512_fmadd_pd(b, b, squares1);
    }
    const float most = _mm512_reduce_max_ps(largest);
    const double squares =
            _mm512_reduce_add_pd(_mm512_add_pd(squares0, squares1));
    extras.rows()[i] = row;
    extras.squares()[i] = squares;
    extras.depth()[i] = depth;
    // Of a row with NaN the largest may be any number, but not the sum.
    if (!(std::isfinite(squares) && most >= kLeast && most <= kMost)) {
        extras.unit()[i] = 0;
        extras.largest()[i] = 0;
        return {row, 0, _mm512_setzero_ps()};
    }
    // Integers below 2^30: the largest component is below 2^exponent.
    const int exponent = int(std::bit_cast<uint32_t>(most) >> 23) - 126;
    extras.unit()[i] =
            std::bit_cast<float>(uint32_t(127 - 30 + exponent) << 23);
    extras.largest()[i] = double(most) * (1 + 0x1p-20);
    return {row,
            std::bit_cast<float>(uint32_t(127 + 30 - exponent) << 23),
            _mm512_setzero_ps()};
}

/// Digits of the step at `begin`: `store(digit, p, sixteen bytes)` for the
/// components from p on, zeros behind the last.
template <class Store>
HWY_INLINE void splitStep(
        ByteRow& from,
        int depth,
        int begin,
        const Store& store) {
    const __m512 scales = _mm512_set1_ps(from.scale);
    const __m512i bias = _mm512_set1_epi32(int32_t(0x80808080u));
    for (int p = begin; p < begin + kByteStep; p += 16) {
        const __m512 scaled = p < depth && from.scale != 0
                ? _mm512_mul_ps(loadByteRow(from.row + p, depth - p), scales)
                : _mm512_setzero_ps();
        const __m512i integers = _mm512_cvtps_epi32(scaled);
        // Exact: of 2^23 and more nothing is left.
        const __m512 rest = _mm512_sub_ps(scaled, _mm512_cvtepi32_ps(integers));
        from.left = _mm512_add_ps(from.left, _mm512_abs_ps(rest));
        // Each byte from -128 to 127: what a digit is more goes into the next.
        const __m512i digits =
                _mm512_xor_si512(_mm512_add_epi32(integers, bias), bias);
        store(0, p, _mm512_cvtepi32_epi8(_mm512_srli_epi32(digits, 24)));
        store(1, p, _mm512_cvtepi32_epi8(_mm512_srli_epi32(digits, 16)));
        store(2, p, _mm512_cvtepi32_epi8(_mm512_srli_epi32(digits, 8)));
        store(3, p, _mm512_cvtepi32_epi8(digits));
    }
}

/// Behind the last step: what is left of all components, at most.
template <int kTile>
HWY_INLINE void finishRow(
        const ByteRow& from,
        const ByteExtras<kTile>& extras,
        int i) {
    if (from.scale == 0) { // nothing of zeros, everything of what is unknown
        extras.rest()[i] = extras.squares()[i] == 0
                ? 0
                : std::numeric_limits<double>::infinity();
        return;
    }
    // A fiftieth for roundings of the sum, and what underflows.
    extras.rest()[i] = extras.unit()[i] *
            (1.02 * double(_mm512_reduce_add_ps(from.left)) + 0x1p-60);
}

/// What the pairs of a query have in common, for L2 twice: the product is
/// subtracted twice.
template <bool kProduct, int kTile>
HWY_INLINE void setByteQuery(const ByteExtras<kTile>& query, int i) {
    constexpr double kTimes = kProduct ? 1 : 2;
    // Of 2^24 units: sums are wanted from the fourth digit on.
    constexpr double kUnits = 0x1p24;
    const double depth = query.depth()[i];
    const double share = fusedProductShare(query.depth()[i]);
    // Roundings in float64, of the canonical distance's too: of |q|^2 + |x|^2,
    // or of |q| |x|, which is d times the largest components at most.
    query.share()[i] =
            kProduct ? query.largest()[i] * depth * share / 4 : share;
    query.unit()[i] *= kTimes * kUnits;
    query.largest()[i] *= kTimes;
    query.rest()[i] *= kTimes;
    // Three products of digits that are left out, 2^23 + 2^14 a component, and
    // the roundings of the last two sums, 2^17.
    query.dropped()[i] = depth * 0.525;
}

/// Panels of kTile rows, step by step: `place(row of the panel, step, digit,
/// byte of the step)` says where sixteen bytes go, `put(there, bytes)` does it.
template <int kTile, class Place, class Put, class Finish>
HWY_INLINE void packByteRows(
        const PackJob<float>& job,
        const Place& place,
        const Put& put,
        const Finish& finish) {
    const int steps = (job.depth + kByteStep - 1) / kByteStep;
    for (idx_t first = 0; first < job.count; first += kTile) {
        float* const panel = job.panels + first * bytePanelDepth(job.depth);
        const ByteExtras<kTile> extras(panel, steps);
        char* const bytes = reinterpret_cast<char*>(panel);
        ByteRow rows[kTile];
        for (int i = 0; i < kTile; ++i) {
            // Rows that are not there: the last one again.
            const idx_t row = std::min(first + i, job.count - 1);
            rows[i] = measureRow(
                    job.rows.row(job.begin + row), job.depth, extras, i);
        }
        // A step of all rows is in the first-level cache while it is filled.
        for (int step = 0; step < steps; ++step) {
            for (int i = 0; i < kTile; ++i) {
                splitStep(
                        rows[i],
                        job.depth,
                        step * kByteStep,
                        [&](int digit, int p, __m128i sixteen) HWY_ATTR {
                            put(bytes + place(i, step, digit, p % kByteStep),
                                sixteen);
                        });
            }
        }
        for (int i = 0; i < kTile; ++i) {
            finishRow(rows[i], extras, i);
            finish(extras, i, first + i);
        }
    }
}

/// Queries: of every step and digit rows of 64 bytes.
template <bool kProduct>
void packByteQueries(const PackJob<float>& job, KernelMetric) {
    constexpr int kTile = tileQueries<float>();
    packByteRows<kTile>(
            job,
            [](int i, int step, int digit, int p) -> idx_t {
                return ((step * kByteDigits + digit) * kTile + i) * kByteStep +
                        p;
            },
            [](char* to, __m128i sixteen) HWY_ATTR {
                _mm_storeu_si128(reinterpret_cast<__m128i*>(to), sixteen);
            },
            [&](const ByteExtras<kTile>& extras, int i, idx_t row) {
                setByteQuery<kProduct>(extras, i);
                if (row < job.count) {
                    job.terms[row] = 0;
                }
            });
}

/// Vectors: of every step, digit and half of the panel the matrix that the
/// instruction wants: four components of 16 vectors a row.
inline void packByteVectors(const PackJob<float>& job, KernelMetric) {
    constexpr int kTile = tileVectors<float>();
    constexpr int kHalf = 16;
    constexpr idx_t kRow = kHalf * 4;
    packByteRows<kTile>(
            job,
            [](int i, int step, int digit, int p) -> idx_t {
                const int block =
                        (step * kByteDigits + digit) * (kTile / kHalf) +
                        i / kHalf;
                return block * kHalf * kByteStep + p / 4 * kRow + i % kHalf * 4;
            },
            [](char* to, __m128i sixteen) HWY_ATTR {
                _mm_storeu_si32(to, sixteen);
                _mm_storeu_si32(to + kRow, _mm_shuffle_epi32(sixteen, 1));
                _mm_storeu_si32(to + 2 * kRow, _mm_shuffle_epi32(sixteen, 2));
                _mm_storeu_si32(to + 3 * kRow, _mm_shuffle_epi32(sixteen, 3));
            },
            [](const ByteExtras<kTile>&, int, idx_t) {});
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
