#include "faiss_bits/flat/IndexFusedFlat.h"

#include <algorithm>
#include <limits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/FaissErrors.h"
#include "faiss_bits/flat/FusedDistance.h"
#include "faiss_bits/flat/SelectedIds.h"

namespace faiss_bits {

using detail::requireCount;
using detail::requireIds;
using detail::requireKey;
using detail::requireNotNull;
using detail::requirePositive;
using detail::requireRun;

namespace {

constexpr idx_t kMaxVectors = std::numeric_limits<int32_t>::max();

/// The sum is taken so that it cannot overflow.
void requireRoom(idx_t ntotal, idx_t more, const char* name) {
    FAISS_THROW_IF_NOT_FMT(
            more <= kMaxVectors - ntotal,
            "%s = %lld: with the %lld vectors that are there it would be more "
            "than %lld",
            name,
            (long long)more,
            (long long)ntotal,
            (long long)kMaxVectors);
}

/// The metric, if it is one of ours; what goes with METRIC_Lp may come later.
faiss::MetricType checkedMetric(faiss::MetricType metric) {
    fusedMetricOf(metric, 1);
    return metric;
}

/// The argument of a new index. One that is set afterwards is not read where
/// the metric has none, as in FAISS.
float checkedMetricArg(faiss::MetricType metric, float metricArg) {
    FAISS_THROW_IF_NOT_FMT(
            metric == faiss::METRIC_Lp || metricArg == 0,
            "metricArg = %g, but only METRIC_Lp has an argument",
            double(metricArg));
    return metricArg;
}

/// What a copy keeps besides metric and vectors.
void takeSettings(const faiss::IndexFlat& from, IndexFusedFlat& to) {
    to.metric_arg = from.metric_arg;
    to.verbose = from.verbose;
    if (auto* fused = dynamic_cast<const IndexFusedFlat*>(&from)) {
        to.choice = fused->choice;
        to.search_mode = fused->search_mode;
    }
}

} // namespace

bool isPlainFlat(const faiss::Index& index) {
    const std::type_info& type = typeid(index);
    return type == typeid(faiss::IndexFlat) ||
            type == typeid(faiss::IndexFlatL2) ||
            type == typeid(faiss::IndexFlatIP) ||
            type == typeid(IndexFusedFlat);
}

//
// making
//

IndexFusedFlat::IndexFusedFlat(int d, faiss::MetricType metric, float metricArg)
        : faiss::IndexFlat(requirePositive(d, "d"), checkedMetric(metric)) {
    metric_arg = checkedMetricArg(metric, metricArg);
}

IndexFusedFlat::IndexFusedFlat(const faiss::IndexFlat& index)
        : IndexFusedFlat(index.d, index.metric_type) {
    requireRoom(0, index.ntotal, "index.ntotal");
    takeSettings(index, *this);
    if (index.ntotal > 0) {
        // Not codes, as classes derived from IndexFlat arrange them anew.
        codes.resize(index.ntotal * code_size);
        index.reconstruct_n(0, index.ntotal, get_xb());
        ntotal = index.ntotal;
    }
}

IndexFusedFlat::IndexFusedFlat(faiss::IndexFlat&& index)
        : IndexFusedFlat(index.d, index.metric_type) {
    if (!isPlainFlat(index)) {
        *this = IndexFusedFlat(std::as_const(index));
        return;
    }
    requireRoom(0, index.ntotal, "index.ntotal");
    takeSettings(index, *this);
    std::swap(codes, index.codes);
    ntotal = std::exchange(index.ntotal, 0);
}

void IndexFusedFlat::add(idx_t n, const float* x) {
    requireCount(n, "n");
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireRoom(ntotal, n, "n");
    faiss::IndexFlat::add(n, x);
}

SearchStats IndexFusedFlat::stats() const {
    return counters_.stats();
}

void IndexFusedFlat::reset_stats() {
    counters_.reset();
}

//
// what is stored
//

size_t IndexFusedFlat::remove_ids(const faiss::IDSelector& sel) {
    // Asked for all ids before the first vector moves: a selector may throw.
    const std::vector<uint8_t> removed = detail::membersOf(sel, ntotal);
    idx_t kept = 0;
    for (idx_t i = 0; i < ntotal; ++i) {
        if (removed[i]) {
            continue;
        }
        if (kept < i) {
            std::copy_n(get_xb() + i * d, d, get_xb() + kept * d);
        }
        ++kept;
    }
    const size_t count = ntotal - kept;
    if (count > 0) {
        codes.resize(kept * code_size);
        ntotal = kept;
    }
    return count;
}

void IndexFusedFlat::reconstruct(idx_t key, float* recons) const {
    requireKey(key, ntotal);
    requireNotNull(recons, "recons");
    std::copy_n(get_xb() + key * d, d, recons);
}

void IndexFusedFlat::reconstruct_n(idx_t i0, idx_t ni, float* recons) const {
    requireRun(i0, ni, ntotal, "ni");
    if (ni == 0) {
        return;
    }
    requireNotNull(recons, "recons");
    std::copy_n(get_xb() + i0 * d, ni * d, recons);
}

void IndexFusedFlat::reconstruct_batch(
        idx_t n,
        const idx_t* keys,
        float* recons) const {
    requireCount(n, "n");
    if (n == 0) {
        return;
    }
    requireNotNull(keys, "keys");
    requireNotNull(recons, "recons");
    requireIds(n, keys, ntotal, "keys", true);
    for (idx_t i = 0; i < n; ++i) {
        if (keys[i] < 0) {
            std::fill_n(recons + i * d, d, 0.f);
        } else {
            std::copy_n(get_xb() + keys[i] * d, d, recons + i * d);
        }
    }
}

void IndexFusedFlat::compute_residual_n(
        idx_t n,
        const float* xs,
        float* residuals,
        const idx_t* keys) const {
    requireCount(n, "n");
    if (n == 0) {
        return;
    }
    requireNotNull(xs, "xs");
    requireNotNull(residuals, "residuals");
    requireNotNull(keys, "keys");
    requireIds(n, keys, ntotal, "keys", true);
    for (idx_t i = 0; i < n; ++i) {
        float* residual = residuals + i * d;
        if (keys[i] < 0) {
            std::fill_n(residual, d, std::numeric_limits<float>::quiet_NaN());
            continue;
        }
        const float* vector = get_xb() + keys[i] * d;
        for (int j = 0; j < d; ++j) {
            residual[j] = xs[i * d + j] - vector[j];
        }
    }
}

void IndexFusedFlat::check_compatible_for_merge(
        const faiss::Index& otherIndex) const {
    FAISS_THROW_IF_NOT_FMT(
            isPlainFlat(otherIndex),
            "otherIndex is a %s: an IndexFusedFlat takes over the vectors of "
            "an "
            "IndexFusedFlat, IndexFlat, IndexFlatL2 or IndexFlatIP",
            faiss::demangle_cpp_symbol(typeid(otherIndex).name()).c_str());
    FAISS_THROW_IF_NOT_MSG(
            &otherIndex != this, "otherIndex is the index itself");
    FAISS_THROW_IF_NOT_FMT(
            otherIndex.d == d,
            "otherIndex.d = %d, but this index has d = %d",
            int(otherIndex.d),
            int(d));
    const bool sameMetric = otherIndex.metric_type == metric_type &&
            (metric_type != faiss::METRIC_Lp ||
             otherIndex.metric_arg == metric_arg);
    FAISS_THROW_IF_NOT_FMT(
            sameMetric,
            "otherIndex.metric_type = %d with metric_arg = %g, but this index "
            "has metric_type = %d with metric_arg = %g",
            int(otherIndex.metric_type),
            otherIndex.metric_arg,
            int(metric_type),
            metric_arg);
    requireRoom(ntotal, otherIndex.ntotal, "otherIndex.ntotal");
}

} // namespace faiss_bits
