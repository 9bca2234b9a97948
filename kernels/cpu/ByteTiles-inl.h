// Canonical keys of a tile of queries x vectors by matrix instructions on
// bytes, and of pairs that they leave in doubt as they are defined:
// ByteTypes.h.

#include <hwy/highway.h>

#include <bit>

#include "kernels/cpu/BytePacking-inl.h"
#include "kernels/cpu/ByteSums-inl.h"
#include "kernels/cpu/Canonical-inl.h"
#include "kernels/cpu/Loops-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_BYTETILES_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_BYTETILES_INL_H_
#undef FAISS_BITS_KERNELS_CPU_BYTETILES_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_BYTETILES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// What a query's pairs have in common.
struct ByteQuery {
    ByteQuery(const ByteExtras<kByteRows>& of, int row)
            : squares(_mm512_set1_pd(of.squares()[row])),
              unit(_mm512_set1_pd(of.unit()[row])),
              largest(_mm512_set1_pd(of.largest()[row])),
              rest(_mm512_set1_pd(of.rest()[row])),
              share(_mm512_set1_pd(of.share()[row])),
              dropped(_mm512_set1_pd(of.dropped()[row])) {}

    __m512d squares, unit, largest, rest, share, dropped;
};

/// Eight pairs: the least keys that they may have, which are their keys but
/// where a bit of the result is set.
template <bool kProduct>
HWY_INLINE __mmask8 keysOfBytes(
        __m256i first,
        const int32_t* sums,
        const ByteExtras<kByteWidth>& vectors,
        int column,
        const ByteQuery& query,
        float* keys) {
    constexpr idx_t kSums = kByteRows * kByteHalf;
    const auto load = [&](int i) HWY_ATTR {
        return _mm256_load_si256(
                reinterpret_cast<const __m256i*>(sums + i * kSums));
    };
    const __m512d places = _mm512_set1_pd(256);
    // The last two in float32: enough for what they are worth.
    const __m512d low = _mm512_cvtps_pd(_mm256_fmadd_ps(
            _mm256_cvtepi32_ps(load(4)),
            _mm256_set1_ps(0x1p-8f),
            _mm256_cvtepi32_ps(load(3))));
    const __m512d sum = _mm512_fmadd_pd(
            _mm512_fmadd_pd(
                    _mm512_cvtepi32_pd(first),
                    places,
                    _mm512_cvtepi32_pd(load(2))),
            places,
            low);
    const __m512d unit =
            _mm512_mul_pd(query.unit, _mm512_load_pd(vectors.unit() + column));
    const __m512d largest = _mm512_load_pd(vectors.largest() + column);
    __m512d value, error;
    if constexpr (kProduct) {
        value = _mm512_mul_pd(unit, sum);
        error = _mm512_mul_pd(query.share, largest);
    } else {
        const __m512d size = _mm512_add_pd(
                query.squares, _mm512_load_pd(vectors.squares() + column));
        value = _mm512_fnmadd_pd(unit, sum, size);
        error = _mm512_mul_pd(query.share, size);
    }
    error = _mm512_fmadd_pd(
            query.largest, _mm512_load_pd(vectors.rest() + column), error);
    error = _mm512_fmadd_pd(query.rest, largest, error);
    error = _mm512_fmadd_pd(query.dropped, unit, error);
    const __m256 low32 = _mm512_cvtpd_ps(_mm512_sub_pd(value, error));
    const __m256 high32 = _mm512_cvtpd_ps(_mm512_add_pd(value, error));
    const __m256 zero = _mm256_setzero_ps();
    // As storeKeys: +0 for -0, before a sign.
    _mm256_store_ps(
            keys,
            kProduct ? _mm256_xor_ps(
                               _mm256_add_ps(high32, zero),
                               _mm256_set1_ps(-0.0f))
                     : _mm256_add_ps(low32, zero));
    // NaN is like nothing.
    return _mm256_cmp_ps_mask(low32, high32, _CMP_NEQ_UQ);
}

/// A tile that is summed and finished by halves.
template <bool kProduct>
struct ByteTile {
    const float* queries = nullptr; ///< panels
    const float* vectors = nullptr;
    int steps = 0;

    /// Sums of a half, and meanwhile what `finishRow` does.
    template <class FinishRow>
    HWY_INLINE void sum(int half, int32_t* sums, const FinishRow& finishRow)
            const {
        sumBytes(
                reinterpret_cast<const char*>(queries),
                reinterpret_cast<const char*>(vectors) +
                        half * kByteHalf * kByteStep,
                steps,
                finishRow);
        storeSums(sums);
    }

    /// Keys of a row of a half of it, and a bit for each column where they are
    /// not known but for the least that they may be.
    HWY_INLINE void finishRow(
            int half,
            const int32_t* sums,
            int row,
            float* keys,
            uint32_t* inDoubt) const {
        const ByteExtras<kByteRows> ofQueries(
                const_cast<float*>(queries), steps);
        const ByteExtras<kByteWidth> ofVectors(
                const_cast<float*>(vectors), steps);
        const ByteQuery query(ofQueries, row);
        const int32_t* const of = sums + row * kByteHalf;
        const __m512i first = _mm512_add_epi32(
                _mm512_slli_epi32(_mm512_load_si512(of), 8),
                _mm512_load_si512(of + kByteRows * kByteHalf));
        const int column = half * kByteHalf;
        float* const to = keys + row * kByteWidth + column;
        const uint32_t left = keysOfBytes<kProduct>(
                _mm512_castsi512_si256(first),
                of,
                ofVectors,
                column,
                query,
                to);
        const uint32_t right = keysOfBytes<kProduct>(
                _mm512_extracti64x4_epi64(first, 1),
                of + 8,
                ofVectors,
                column + 8,
                query,
                to + 8);
        const uint32_t bits = (left | right << 8) << column;
        inDoubt[row] = half == 0 ? bits : inDoubt[row] | bits;
    }
};

/// Tiles one after the other: `next(tile)` sets the panels of the next one, or
/// is false, and `take(keys, inDoubt)` gets each in turn. While a half is
/// summed, the half before is finished.
template <bool kProduct, class Next, class Take>
HWY_INLINE void runByteTilesBy(int steps, const Next& next, const Take& take) {
    constexpr idx_t kSums = kByteSums * kByteRows * kByteHalf;
    const ByteRegisters registers;
    alignas(64) int32_t sums[2][kSums];
    alignas(64) float keys[kByteRows * kByteWidth];
    uint32_t inDoubt[kByteRows];
    ByteTile<kProduct> tile, following;
    tile.steps = following.steps = steps;
    if (!next(following)) {
        return;
    }
    following.sum(0, sums[0], [](int) {});
    // Queries come from the second-level cache: the first step of the next
    // ones is fetched before they are wanted.
    constexpr int kAhead = kByteDigits * kByteStep;
    for (bool more = true; more;) {
        tile = following;
        more = next(following);
        const char* const ahead =
                reinterpret_cast<const char*>(following.queries);
        tile.sum(1, sums[1], [&](int row) HWY_ATTR {
            for (int byte = 0; byte < kAhead; byte += 64) {
                __builtin_prefetch(ahead + row * kAhead + byte);
            }
            tile.finishRow(0, sums[0], row, keys, inDoubt);
        });
        const auto finish = [&](int row) HWY_ATTR {
            tile.finishRow(1, sums[1], row, keys, inDoubt);
        };
        if (more) {
            following.sum(0, sums[0], finish);
        } else {
            for (int row = 0; row < kByteRows; ++row) {
                finish(row);
            }
        }
        take(tile, keys, inDoubt);
    }
}

/// The canonical key of a pair.
template <bool kProduct>
HWY_NOINLINE float canonicalKey(const float* q, const float* x, int depth) {
    constexpr auto kMetric =
            kProduct ? KernelMetric::Product : KernelMetric::Squares;
    using Terms = decltype(canonicalTerms<kMetric, float>());
    const SlotTag d;
    static_assert(slotLanes() == kCanonicalSlots);
    const CanonicalPowers power(2);
    SlotVec sum = hn::Zero(d);
    int p = 0;
    for (; p + kCanonicalSlots <= depth; p += kCanonicalSlots) {
        sum = Terms::add(d, sum, loadWide(d, x + p), loadWide(d, q + p), power);
    }
    if (p < depth) {
        sum = Terms::add(
                d,
                sum,
                loadWideFirst(d, x + p, depth - p),
                loadWideFirst(d, q + p, depth - p),
                power);
    }
    return keyOf<kMetric, float>(joinHalves<Terms>(d, sum));
}

/// As runTilesBy of Loops-inl.h, a tile ahead.
template <bool kProduct>
void runByteTiles(const TileJob<float>& job) {
    Sink<float>& sink = *job.sink;
    const int steps = job.depth / kByteStep;
    const idx_t panels = (job.columns + kByteWidth - 1) / kByteWidth;
    const int queryPanels = (job.rows + kByteRows - 1) / kByteRows;
    struct Place {
        idx_t panel = 0;
        int queries = 0;
    } ahead, at;
    const auto step = [&](Place& place) {
        if (++place.queries == queryPanels) {
            place.queries = 0;
            ++place.panel;
        }
    };
    bool force = anyTakesAll(sink, job.firstRow, job.rows);
    runByteTilesBy<kProduct>(
            steps,
            [&](ByteTile<kProduct>& tile) {
                if (ahead.panel == panels) {
                    return false;
                }
                tile.queries = job.queries +
                        idx_t(ahead.queries) * job.depth * kByteRows;
                tile.vectors =
                        job.vectors + ahead.panel * job.depth * kByteWidth;
                step(ahead);
                return true;
            },
            [&](const ByteTile<kProduct>& tile,
                float* keys,
                const uint32_t* inDoubt) {
                const ByteExtras<kByteRows> queries(
                        const_cast<float*>(tile.queries), steps);
                const ByteExtras<kByteWidth> vectors(
                        const_cast<float*>(tile.vectors), steps);
                const idx_t firstRow = job.firstRow + at.queries * kByteRows;
                const int rows =
                        std::min(kByteRows, job.rows - at.queries * kByteRows);
                const int valid = int(std::min<idx_t>(
                        kByteWidth, job.columns - at.panel * kByteWidth));
                bool any = force;
                for (int row = 0; row < rows; ++row) {
                    float* const of = keys + row * kByteWidth;
                    const float filter = sink.filter[firstRow + row];
                    for (uint32_t bits = inDoubt[row]; bits; bits &= bits - 1) {
                        const int column = std::countr_zero(bits);
                        if (column >= valid ||
                            (!force && of[column] > filter)) {
                            continue; // none, or beyond the limit in any case
                        }
                        of[column] = canonicalKey<kProduct>(
                                queries.rows()[row],
                                vectors.rows()[column],
                                queries.depth()[row]);
                    }
                    any = any || passesFilter(filter, of);
                }
                if (any) {
                    const TileRow<float> of = {
                            keys, job.firstId + at.panel * kByteWidth, valid};
                    emitTile(sink, firstRow, rows, of, force);
                }
                step(at);
                if (force && at.queries == 0) {
                    force = anyTakesAll(sink, job.firstRow, job.rows);
                }
            });
}

template <bool kProduct>
idx_t countInDoubtOf(
        const float* queries,
        idx_t numQueries,
        const float* vectors,
        idx_t numVectors,
        int depth) {
    const int values = bytePanelDepth(depth);
    idx_t count = 0, row = 0, first = 0;
    runByteTilesBy<kProduct>(
            values / kByteStep,
            [&](ByteTile<kProduct>& tile) {
                if (first == numVectors) {
                    return false;
                }
                tile.queries = queries + row * values;
                tile.vectors = vectors + first * values;
                row += kByteRows;
                if (row == numQueries) {
                    row = 0;
                    first += kByteWidth;
                }
                return true;
            },
            [&](const ByteTile<kProduct>&, float*, const uint32_t* inDoubt) {
                for (int i = 0; i < kByteRows; ++i) {
                    count += std::popcount(inDoubt[i]);
                }
            });
    return count;
}

inline idx_t countInDoubt(
        const float* queries,
        idx_t numQueries,
        const float* vectors,
        idx_t numVectors,
        int depth,
        bool isProduct) {
    const auto count =
            isProduct ? &countInDoubtOf<true> : &countInDoubtOf<false>;
    return count(queries, numQueries, vectors, numVectors, depth);
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
