// Inner products of all pairs of packed queries and packed vectors, or squared
// distances as |q|^2 + |x|^2 - 2 <q, x>, in float64: one fused operation a
// component. Most of them round to the float32 of the canonical distance
// whatever their error is; the others are named.

#include <hwy/highway.h>

#include "kernels/cpu/Canonical-inl.h"
#include "kernels/cpu/Emit-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_CANONICALPRODUCTS_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_CANONICALPRODUCTS_INL_H_
#undef FAISS_BITS_KERNELS_CPU_CANONICALPRODUCTS_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_CANONICALPRODUCTS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Queries that meet a panel at a time: with four vectors of vectors 24 of 32
/// registers hold their sums, or 8 of 16.
constexpr int productRows() {
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
    return 6;
#else
    return 2;
#endif
}

/// True if that leads to canonical distances.
template <KernelMetric kMetric, class T>
constexpr bool triesProducts() {
    return HWY_NATIVE_FMA && sizeof(T) == sizeof(float) &&
            (kMetric == KernelMetric::L2 || kMetric == KernelMetric::Squares ||
             kMetric == KernelMetric::Product);
}

/// The part of a query or a vector, by the sum of its squares: the least that
/// it adds to a distance beside the product, and twice its part of the error.
struct DoubleTerms {
    double low, error;

    DoubleTerms() = default;
    DoubleTerms(double squares, double share, bool isProduct)
            : low(isProduct ? -squares * share / 2 : squares - squares * share),
              error((isProduct ? 1 : 2) * squares * share) {}
};

/// Sums of squares of the columns of a matrix [depth][kWidth].
template <int kWidth>
HWY_INLINE void sumPanelSquares(const double* panel, int depth, double* to) {
    constexpr int kLanes = kWidth % slotLanes() == 0 ? slotLanes()
            : kWidth % 4 == 0                        ? 4
            : kWidth % 2 == 0                        ? 2
                                                     : 1;
    const hn::CappedTag<double, kLanes> d;
    hn::Vec<decltype(d)> sums[kWidth / kLanes];
    FAISS_BITS_UNROLL_SUMS
    for (auto& sum : sums) {
        sum = hn::Zero(d);
    }
    for (int p = 0; p < depth; ++p) {
        FAISS_BITS_UNROLL_SUMS
        for (int i = 0; i < kWidth / kLanes; ++i) {
            const auto x = hn::LoadU(d, panel + i * kLanes);
            sums[i] = hn::MulAdd(x, x, sums[i]);
        }
        panel += kWidth;
    }
    FAISS_BITS_UNROLL_SUMS
    for (int i = 0; i < kWidth / kLanes; ++i) {
        hn::StoreU(sums[i], d, to + i * kLanes);
    }
}

/// The terms of kWidth vectors, widened in panels of slotLanes().
template <int kWidth>
HWY_INLINE void panelTerms(
        const double* panel,
        int depth,
        double share,
        bool isProduct,
        double* lows,
        double* errors) {
    for (int v = 0; v < kWidth; v += slotLanes()) {
        sumPanelSquares<slotLanes()>(
                panel + idx_t(v) * depth, depth, lows + v);
    }
    for (int i = 0; i < kWidth; ++i) {
        const DoubleTerms terms(lows[i], share, isProduct);
        lows[i] = terms.low;
        errors[i] = terms.error;
    }
}

/// Are numbers alike in all lanes of some vectors? NaN is like nothing.
class AlikeLanes {
   public:
#if HWY_TARGET <= HWY_AVX3
    // A comparison that begins with the mask of those before.
    template <class D, class V>
    HWY_INLINE void take(D, V a, V b) {
        static_assert(hn::MaxLanes(D()) == 8);
        mask_ = _mm256_mask_cmp_ps_mask(mask_, a.raw, b.raw, _CMP_EQ_OQ);
    }
    HWY_INLINE bool all() const {
        return mask_ == 0xff;
    }

   private:
    __mmask8 mask_ = 0xff;
#else
    template <class D, class V>
    HWY_INLINE void take(D d, V a, V b) {
        all_ = hn::AllTrue(d, hn::Eq(a, b)) && all_;
    }
    HWY_INLINE bool all() const {
        return all_;
    }

   private:
    bool all_ = true;
#endif
};

/// What the queries of some rows are compared with.
struct DoublePanel {
    const double* vectors; ///< [vecs][depth][lanes]
    const double* lows;    ///< [vecs][lanes], as DoubleTerms
    const double* errors;
    int depth;
};

/// Keys of kRows queries [depth][queryStep], for L2 times two, and a whole
/// panel; a bit for each row that has a key in doubt.
template <int kRows, int kVecs>
HWY_INLINE uint32_t keysOfProducts(
        const double* HWY_RESTRICT queries,
        idx_t queryStep,
        const DoubleTerms* terms,
        const DoublePanel& panel,
        float* HWY_RESTRICT to) {
    const SlotTag d;
    const hn::Rebind<float, SlotTag> narrow;
    constexpr int kLanes = slotLanes();
    SlotVec sums[kRows][kVecs];
    FAISS_BITS_UNROLL_SUMS
    for (int r = 0; r < kRows; ++r) {
        const SlotVec low = hn::Set(d, terms[r].low);
        FAISS_BITS_UNROLL_SUMS
        for (int v = 0; v < kVecs; ++v) {
            sums[r][v] = hn::Add(low, hn::Load(d, panel.lows + v * kLanes));
        }
    }
    const idx_t vecStep = idx_t(panel.depth) * kLanes;
    const double* HWY_RESTRICT vectors = panel.vectors;
    for (int p = 0; p < panel.depth; ++p) {
        SlotVec x[kVecs];
        FAISS_BITS_UNROLL_SUMS
        for (int v = 0; v < kVecs; ++v) {
            x[v] = hn::Load(d, vectors + v * vecStep);
        }
        FAISS_BITS_UNROLL_SUMS
        for (int r = 0; r < kRows; ++r) {
            const SlotVec q = hn::Set(d, queries[r]);
            FAISS_BITS_UNROLL_SUMS
            for (int v = 0; v < kVecs; ++v) {
                sums[r][v] = hn::NegMulAdd(q, x[v], sums[r][v]);
            }
        }
        queries += queryStep;
        vectors += kLanes;
    }
    uint32_t inDoubt = 0;
    FAISS_BITS_UNROLL_SUMS
    for (int r = 0; r < kRows; ++r) {
        const SlotVec error = hn::Set(d, terms[r].error);
        AlikeLanes alike;
        FAISS_BITS_UNROLL_SUMS
        for (int v = 0; v < kVecs; ++v) {
            const SlotVec errors =
                    hn::Add(error, hn::Load(d, panel.errors + v * kLanes));
            const auto low = hn::DemoteTo(narrow, sums[r][v]);
            const auto high = hn::DemoteTo(narrow, hn::Add(sums[r][v], errors));
            alike.take(narrow, low, high);
            // Sinks add a zero: +0 for -0.
            hn::StoreU(low, narrow, to + r * tileVectors<float>() + v * kLanes);
        }
        inDoubt |= uint32_t(!alike.all()) << r;
    }
    return inDoubt;
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
