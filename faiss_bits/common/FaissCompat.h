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

namespace faiss_bits {

/// FAISS's id type, which has moved from faiss::Index to faiss.
using idx_t = int64_t;
static_assert(
        std::is_same_v<
                idx_t,
                std::remove_const_t<decltype(faiss::Index::ntotal)>>,
        "FAISS's idx_t is expected to be int64_t");

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
struct HasUseCuvs : std::false_type {};
template <class T>
struct HasUseCuvs<T, std::void_t<decltype(std::declval<T&>().use_cuvs)>>
        : std::true_type {};

template <class T, class = void>
struct HasJaccard : std::false_type {};
template <class T>
struct HasJaccard<T, std::void_t<decltype(T::METRIC_Jaccard)>>
        : std::true_type {};

template <class T, class = void>
struct HasBFloat16 : std::false_type {};
template <class T>
struct HasBFloat16<T, std::void_t<decltype(T::BF16)>> : std::true_type {};

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
