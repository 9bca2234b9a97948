#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <faiss/Index.h>

/// The differences between FAISS's releases (1.7.3 to 1.15), all in one place.
/// This header needs no CUDA; what it says of GPU types is written as
/// templates, so that it compiles beside a CPU-only FAISS too.

#define FAISS_BITS_FAISS_VERSION                               \
    (FAISS_VERSION_MAJOR * 10000 + FAISS_VERSION_MINOR * 100 + \
     FAISS_VERSION_PATCH)

/// Since 1.7.4, sizes and tensors on the GPU are 64-bit.
#define FAISS_BITS_FAISS_IS_64BIT (FAISS_BITS_FAISS_VERSION >= 10704)

/// Since 1.12.0, faiss::Index has add_ex and search_ex with a NumericType.
#define FAISS_BITS_FAISS_HAS_NUMERIC_TYPE (FAISS_BITS_FAISS_VERSION >= 11200)

/// Since 1.7.4, there are IDSelectorAnd, IDSelectorOr and IDSelectorXOr.
#define FAISS_BITS_FAISS_HAS_LOGICAL_SELECTORS \
    (FAISS_BITS_FAISS_VERSION >= 10704)

/// Since 1.7.4, GpuIndexIVF is an IndexIVFInterface, whose search_preassigned
/// is virtual and has IndexIVFStats.
#define FAISS_BITS_FAISS_HAS_IVF_INTERFACE (FAISS_BITS_FAISS_VERSION >= 10704)

/// FAISS's GpuIndexIVFPQ::copyTo makes room for codes of fewer than 8 bits;
/// 1.7.3 takes each to be a byte, and reads behind them. Looked up in 1.7.3 and
/// 1.15.
#define FAISS_BITS_FAISS_COPIES_PACKED_CODES (FAISS_BITS_FAISS_VERSION >= 11500)

/// Indexes whose vectors are stored in levels: inverted lists since 1.13.0
/// (IndexIVFFlatPanorama), flat ones since 1.13.1 (IndexFlatPanorama).
#define FAISS_BITS_FAISS_HAS_IVF_PANORAMA (FAISS_BITS_FAISS_VERSION >= 11300)
#define FAISS_BITS_FAISS_HAS_FLAT_PANORAMA (FAISS_BITS_FAISS_VERSION >= 11301)

namespace faiss_bits {

/// FAISS's id type, which has moved from faiss::Index to faiss.
using idx_t = int64_t;
static_assert(
        std::is_same_v<
                idx_t,
                std::remove_const_t<decltype(faiss::Index::ntotal)>>,
        "FAISS's idx_t is expected to be int64_t");

#ifndef SWIG // it does not understand the expressions below
namespace detail {

/// Options of k-means that FAISS's ClusteringParameters has not always had, as
/// they work where it has them not.
struct LaterClusteringOptions {
    bool checkInput = true;         ///< check_input_data_for_NaNs
    bool fasterSubsampling = false; ///< use_faster_subsampling
    /// A negative seed asks for one of the clock. Since use_faster_subsampling.
    bool clockSeeds = false;
    int initMethod = 0;       ///< init_method; 0: RANDOM
    bool superKmeans = false; ///< use_super_kmeans
    /// early_stop_threshold; below 0: never. 1.14.0 stops where the objective
    /// is what it was, and has no option.
    double earlyStop = FAISS_BITS_FAISS_VERSION >= 11400 ? 0 : -1;
};

// Which of them a type has. C++17, as FAISS's headers.
template <class T, class = void>
struct HasInputCheck : std::false_type {};
template <class T>
struct HasInputCheck<
        T,
        std::void_t<decltype(std::declval<T&>().check_input_data_for_NaNs)>>
        : std::true_type {};

template <class T, class = void>
struct HasFasterSubsampling : std::false_type {};
template <class T>
struct HasFasterSubsampling<
        T,
        std::void_t<decltype(std::declval<T&>().use_faster_subsampling)>>
        : std::true_type {};

template <class T, class = void>
struct HasInitMethod : std::false_type {};
template <class T>
struct HasInitMethod<T, std::void_t<decltype(std::declval<T&>().init_method)>>
        : std::true_type {};

template <class T, class = void>
struct HasSuperKmeans : std::false_type {};
template <class T>
struct HasSuperKmeans<
        T,
        std::void_t<decltype(std::declval<T&>().use_super_kmeans)>>
        : std::true_type {};

template <class T, class = void>
struct HasEarlyStop : std::false_type {};
template <class T>
struct HasEarlyStop<
        T,
        std::void_t<decltype(std::declval<T&>().early_stop_threshold)>>
        : std::true_type {};

template <class Params>
LaterClusteringOptions laterClusteringOptions(const Params& params) {
    LaterClusteringOptions options;
    if constexpr (HasInputCheck<Params>::value) {
        options.checkInput = params.check_input_data_for_NaNs;
    }
    if constexpr (HasFasterSubsampling<Params>::value) {
        options.fasterSubsampling = params.use_faster_subsampling;
        options.clockSeeds = true;
    }
    if constexpr (HasInitMethod<Params>::value) {
        options.initMethod = int(params.init_method);
    }
    if constexpr (HasSuperKmeans<Params>::value) {
        options.superKmeans = params.use_super_kmeans;
    }
    if constexpr (HasEarlyStop<Params>::value) {
        options.earlyStop = params.early_stop_threshold;
    }
    return options;
}

template <class T, class = void>
struct HasTopKFull : std::false_type {};
template <class T>
struct HasTopKFull<
        T,
        std::void_t<decltype(std::declval<T&>().ensure_topk_full)>>
        : std::true_type {};

template <class T, class = void>
struct HasListContext : std::false_type {};
template <class T>
struct HasListContext<
        T,
        std::void_t<decltype(std::declval<T&>().inverted_list_context)>>
        : std::true_type {};

template <class T, class = void>
struct HasIterator : std::false_type {};
template <class T>
struct HasIterator<T, std::void_t<decltype(std::declval<T&>().use_iterator)>>
        : std::true_type {};

/// Whether the parameters of an IVF search have ensure_topk_full.
template <class Params>
bool fillsTopK(const Params& params) {
    if constexpr (HasTopKFull<Params>::value) {
        return params.ensure_topk_full;
    }
    (void)params;
    return false;
}

template <class T, class = void>
struct HasEmptyLimit : std::false_type {};
template <class T>
struct HasEmptyLimit<
        T,
        std::void_t<decltype(std::declval<T&>().max_empty_result_buckets)>>
        : std::true_type {};

/// Lists with nothing in range after which the parameters of an IVF range search
/// end it (max_empty_result_buckets, since 1.15); 0: none do.
template <class Params>
size_t mostEmptyLists(const Params& params) {
    if constexpr (HasEmptyLimit<Params>::value) {
        return params.max_empty_result_buckets;
    }
    (void)params;
    return 0;
}

/// Whether the parameters of an IVF search have something for the lists.
template <class Params>
bool hasListContext(const Params& params) {
    if constexpr (HasListContext<Params>::value) {
        return params.inverted_list_context != nullptr;
    }
    (void)params;
    return false;
}

/// Whether inverted lists have an iterator in place of codes.
template <class Lists>
bool usesIterator(const Lists& lists) {
    if constexpr (HasIterator<Lists>::value) {
        return lists.use_iterator;
    }
    (void)lists;
    return false;
}

template <class T, class = void>
struct HasJaccard : std::false_type {};
template <class T>
struct HasJaccard<T, std::void_t<decltype(T::METRIC_Jaccard)>>
        : std::true_type {};

} // namespace detail
#endif

/// METRIC_Jaccard came with 1.7.4.
template <class MetricType>
constexpr bool isJaccard(MetricType metric) {
    if constexpr (detail::HasJaccard<MetricType>::value) {
        return metric == MetricType::METRIC_Jaccard;
    } else {
        (void)metric;
        return false;
    }
}

namespace gpu {

#if FAISS_BITS_FAISS_IS_64BIT
/// Type of n in GpuIndex::addImpl_ and searchImpl_, and of a tensor's sizes.
using ImplSize = idx_t;
#else
using ImplSize = int;
#endif

#ifndef SWIG // it does not understand the expressions below
namespace detail {

// Which of the fields that came later a type has. C++17, as FAISS's headers.
template <class T, class = void>
struct HasDevice : std::false_type {};
template <class T>
struct HasDevice<T, std::void_t<decltype(std::declval<T&>().device)>>
        : std::true_type {};

template <class T, class = void>
struct HasMaxListsNum : std::false_type {};
template <class T>
struct HasMaxListsNum<
        T,
        std::void_t<decltype(std::declval<T&>().max_lists_num)>>
        : std::true_type {};

template <class T, class = void>
struct HasUseCuvs : std::false_type {};
template <class T>
struct HasUseCuvs<T, std::void_t<decltype(std::declval<T&>().use_cuvs)>>
        : std::true_type {};

template <class T, class = void>
struct HasBFloat16 : std::false_type {};
template <class T>
struct HasBFloat16<T, std::void_t<decltype(T::BF16)>> : std::true_type {};

template <class T, class = void>
struct HasCommonQuantizer : std::false_type {};
template <class T>
struct HasCommonQuantizer<
        T,
        std::void_t<decltype(std::declval<T&>().common_ivf_quantizer)>>
        : std::true_type {};

/// Whether a cloner for several GPUs is asked for one quantizer for all.
template <class Options>
bool wantsCommonQuantizer(const Options& options) {
    if constexpr (HasCommonQuantizer<Options>::value) {
        return options.common_ivf_quantizer;
    }
    (void)options;
    return false;
}

// The type of a subset in IndexIVF::copy_subset_to, which was int.
template <class T>
struct SubsetType;
template <class Index, class Type>
struct SubsetType<void (Index::*)(Index&, Type, idx_t, idx_t) const> {
    using type = Type;
};

/// Subsets of whole lists (type 4) came with the enumeration.
constexpr bool kHasSubsetOfLists = FAISS_BITS_FAISS_VERSION >= 10704;

/// IndexIVF::copy_subset_to.
template <class Index>
void copySubset(
        const Index& from,
        Index& to,
        int type,
        idx_t first,
        idx_t second) {
    using Subset = typename SubsetType<decltype(&Index::copy_subset_to)>::type;
    from.copy_subset_to(to, static_cast<Subset>(type), first, second);
}

} // namespace detail
#endif

/// The device that GpuDistanceParams asks for; -1 (the current one) in
/// releases that have no such field.
template <class Params>
int requestedDevice(const Params& params) {
    if constexpr (detail::HasDevice<Params>::value) {
        return params.device;
    } else {
        (void)params;
        return -1;
    }
}

/// DistanceDataType::BF16 came with 1.10.
template <class DistanceType>
constexpr bool isBFloat16(DistanceType type) {
    if constexpr (detail::HasBFloat16<DistanceType>::value) {
        return type == DistanceType::BF16;
    } else {
        (void)type;
        return false;
    }
}

/// True if the caller has set use_cuvs in a FAISS without cuVS. Where cuVS is
/// built in, the field is set by default and says nothing.
template <class Params>
constexpr bool asksForMissingCuvs(const Params& params) {
#if !defined(USE_NVIDIA_CUVS)
    if constexpr (detail::HasUseCuvs<Params>::value) {
        return params.use_cuvs;
    }
#endif
    (void)params;
    return false;
}

/// Whether the parameters of an IVF search have a max_lists_num other than 0.
template <class Params>
bool limitsLists(const Params& params) {
    if constexpr (detail::HasMaxListsNum<Params>::value) {
        return params.max_lists_num != 0;
    }
    (void)params;
    return false;
}

/// Our classes never dispatch to cuVS; with it, FAISS's base class would
/// create cuVS storage behind them.
template <class Config>
void turnOffCuvs(Config& config) {
    if constexpr (detail::HasUseCuvs<Config>::value) {
        config.use_cuvs = false;
    } else {
        (void)config;
    }
}

/// Copies a cloner's choice of cuVS to an index config.
template <class Config, class Options>
void copyCuvsChoice(Config& config, const Options& options) {
    if constexpr (
            detail::HasUseCuvs<Config>::value &&
            detail::HasUseCuvs<Options>::value) {
        config.use_cuvs = options.use_cuvs;
    } else {
        (void)config;
        (void)options;
    }
}

} // namespace gpu
} // namespace faiss_bits

#ifdef FAISS_BITS_FAISS_IS_WHEEL
#include <faiss/impl/ScalarQuantizer.h>
// Headers of a source tree for a wheel's library: a later source than the
// release may say its number too. With a quantizer of another size, what
// follows it in FAISS's index would be read elsewhere.
static_assert(
        FAISS_BITS_FAISS_VERSION != 11501 ||
                sizeof(faiss::ScalarQuantizer) == 88,
        "FAISS's headers say 1.15.1 and are not of that release: "
        "FAISS_BITS_FAISS_HEADERS must name a source tree of the tag v1.15.1");
#endif
