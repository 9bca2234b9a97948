// Searches of GpuIndexBitsReplicas.

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/ivf/IvfSearch.h"
#include "faiss_bits/many/GpuIndexBitsReplicas.h"
#include "faiss_bits/many/ManyCalls.h"
#include "faiss_bits/many/ManyMemory.h"
#include "faiss_bits/many/ManyRange.h"
#include "faiss_bits/many/PartFilters.h"
#include "faiss_bits/many/ReplicaSet.h"

namespace faiss_bits::gpu {

using detail::CurrentDevice;
using detail::GpuContext;
using detail::MemoryStack;
using detail::PartFilters;
using detail::ReplicaSet;
using detail::requireNotNull;
using detail::sliceBegin;
using detail::StreamMark;
using detail::withFaissErrors;

namespace {

/// An array of the caller's.
struct CallArray {
    CallArray(
            const GpuContext& home,
            const char* name,
            const void* given,
            size_t rowBytes)
            : data(static_cast<char*>(const_cast<void*>(given))),
              rowBytes(rowBytes),
              onHost(!data || detail::placeOf(home, name, data).onHost) {}

    char* data;
    size_t rowBytes;
    bool onHost;
};

/// One search, in slices.
class SlicedSearch {
   public:
    SlicedSearch(
            const ReplicaSet& set,
            const GpuContext& home,
            idx_t n,
            idx_t k,
            double workPerRow,
            CallArray x,
            CallArray distances,
            CallArray labels,
            const std::function<const faiss::SearchParameters*(int)>& params)
            : set_(set),
              home_(home),
              n_(n),
              k_(k),
              x_(x),
              distances_(distances),
              labels_(labels),
              params_(params),
              memory_(set.devices.groups().size()),
              found_(set.devices.size()) {
        isOnHost_ = x.onHost && distances.onHost && labels.onHost;
        // Where the host waits it must be able to stop between two pieces; more
        // than 16 queries have one arithmetic.
        constexpr double kPieceWork = 8 * detail::kPageWork;
        constexpr idx_t kLeastPiece = 64;
        most_ = isOnHost_
                ? std::max(kLeastPiece, idx_t(kPieceWork / workPerRow))
                : n;
    }

    void run() {
        if (!isOnHost_) {
            start_.record(home_.stream);
        }
        try {
            set_.devices.onGroups(
                    [&](int group) {
                        try {
                            searchGroup_(group);
                        } catch (...) {
                            stop_ = true;
                            throw;
                        }
                    },
                    [&] {
                        try {
                            detail::throwIfInterrupted();
                        } catch (...) {
                            stop_ = true;
                            throw;
                        }
                    });
            if (!isOnHost_) {
                bringBack_();
            }
        } catch (...) {
            set_.devices.waitForAll();
            throw;
        }
    }

   private:
    void searchGroup_(int group) {
        for (int part : set_.devices.groups()[group].parts) {
            const int parts = set_.devices.size();
            const idx_t begin = sliceBegin(n_, parts, part);
            const idx_t end = sliceBegin(n_, parts, part + 1);
            const int pieces = int((end - begin + most_ - 1) / most_);
            for (int i = 0; i < pieces && !stop_; ++i) {
                const idx_t first = begin + sliceBegin(end - begin, pieces, i);
                const idx_t rows =
                        begin + sliceBegin(end - begin, pieces, i + 1) - first;
                set_.devices.onPart(
                        part, [&] { searchPiece_(group, part, first, rows); });
            }
        }
    }

    void searchPiece_(int group, int part, idx_t first, idx_t rows) {
        const GpuContext context =
                part == 0 ? home_ : set_.devices.context(part);
        if (!isOnHost_) {
            start_.holdUp(context.stream);
        }
        const auto hereOf = [&](const CallArray& array) -> char* {
            if (!array.data) {
                return nullptr;
            }
            return array.onHost || group == 0
                    ? array.data + first * array.rowBytes
                    : static_cast<char*>(memory_[group].take(
                              context, rows * array.rowBytes));
        };
        char* const x = hereOf(x_);
        char* const distances = hereOf(distances_);
        char* const labels = hereOf(labels_);
        if (!x_.onHost && group != 0) {
            set_.copies->fetch(
                    group,
                    x,
                    context.stream,
                    0,
                    x_.data + first * x_.rowBytes,
                    start_,
                    home_.resources->getAsyncCopyStream(home_.device),
                    rows * x_.rowBytes);
        }
        faiss::gpu::GpuIndex& replica = *set_.replicas[part];
        const auto* queries = reinterpret_cast<const float*>(x);
        auto* ids = reinterpret_cast<idx_t*>(labels);
        if (distances) {
            replica.search(
                    rows,
                    queries,
                    k_,
                    reinterpret_cast<float*>(distances),
                    ids,
                    params_(part));
        } else {
            replica.assign(rows, queries, ids, k_);
        }
        if (!isOnHost_) {
            found_[part] = {first, rows, distances, labels, {}};
            found_[part].done.record(context.stream);
        }
    }

    /// When everyone has enqueued: nobody's search on the stream of home comes
    /// after one of another device.
    void bringBack_() {
        for (int part = 0; part < set_.devices.size(); ++part) {
            const Found& found = found_[part];
            const int group = set_.devices.groupOf(part);
            const auto bring = [&](const CallArray& array, char* here) {
                if (array.data && !array.onHost && group != 0) {
                    set_.copies->copy(
                            0,
                            array.data + found.first * array.rowBytes,
                            home_.stream,
                            group,
                            here,
                            found.done.stream,
                            found.rows * array.rowBytes);
                }
            };
            if (found.rows > 0) {
                bring(distances_, found.distances);
                bring(labels_, found.labels);
                found.done.holdUp(home_.stream);
            }
        }
    }

    /// Of one part, where arrays are on the device.
    struct Found {
        idx_t first = 0;
        idx_t rows = 0;
        char* distances = nullptr;
        char* labels = nullptr;
        StreamMark done;
    };

    const ReplicaSet& set_;
    const GpuContext home_;
    const idx_t n_;
    const idx_t k_;
    const CallArray x_;
    const CallArray distances_;
    const CallArray labels_;
    const std::function<const faiss::SearchParameters*(int)>& params_;
    bool isOnHost_ = false;
    idx_t most_ = 0;   // queries of a piece
    StreamMark start_; // the queries are there
    std::atomic<bool> stop_ = false;
    std::vector<MemoryStack> memory_; // of each group
    std::vector<Found> found_;        // of each part
};

/// What each replica gets for the parameters of a search.
class ReplicaParameters {
   public:
    ReplicaParameters(
            const faiss::SearchParameters* params,
            const ReplicaSet& set,
            idx_t ntotal)
            : params_(params) {
        if (!set.flat.empty()) {
            filters_.emplace(
                    params,
                    set.devices.size(),
                    ntotal,
                    set.devices[0].device,
                    set.devices.groups().size() == 1);
        } else {
            detail::requireNoLimit(params);
        }
    }

    const faiss::SearchParameters* operator()(int part) const {
        return filters_ ? (*filters_)[part] : params_;
    }

   private:
    const faiss::SearchParameters* params_;
    std::optional<PartFilters> filters_;
};

} // namespace

void GpuIndexBitsReplicas::tellReplicas_() const {
    detail::requireMetricArg(
            detail::requireMetric(metric_type), "metric_arg", metric_arg);
    for (GpuIndexBitsFlat* replica : set_->flat) {
        replica->search_mode = search_mode;
        replica->metric_arg = metric_arg;
    }
}

void GpuIndexBitsReplicas::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    if (n != 0) {
        requireNotNull(distances, "distances");
    }
    searchSlices_(n, x, k, distances, labels, params);
}

void GpuIndexBitsReplicas::assign(
        idx_t n,
        const float* x,
        idx_t* labels,
        idx_t k) const {
    searchSlices_(n, x, k, nullptr, labels, nullptr);
}

void GpuIndexBitsReplicas::searchSlices_(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    withFaissErrors([&] {
        const GpuContext home = set_->devices.context(0);
        detail::requireManySearch(home, n, k);
        tellReplicas_();
        const ReplicaParameters filters(params, *set_, ntotal);
        if (n == 0) {
            return;
        }
        requireNotNull(x, "x");
        requireNotNull(labels, "labels");
        const CurrentDevice scope(home.device);
        const std::function<const faiss::SearchParameters*(int)> of =
                [&](int part) { return filters(part); };
        SlicedSearch search(
                *set_,
                home,
                n,
                k,
                detail::manyWork(ntotal, d, k, 1),
                CallArray(home, "x", x, sizeof(float) * d),
                CallArray(home, "distances", distances, sizeof(float) * k),
                CallArray(home, "labels", labels, sizeof(idx_t) * k),
                of);
        search.run();
    });
}

void GpuIndexBitsReplicas::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    withFaissErrors([&] {
        detail::requireCount(n, "n");
        requireNotNull(result, "result");
        FAISS_THROW_IF_NOT_FMT(
                result->nq == size_t(n),
                "result->nq = %zu, expected n = %lld",
                result->nq,
                (long long)n);
        tellReplicas_();
        const ReplicaParameters filters(params, *set_, ntotal);
        if (n == 0) {
            result->do_allocation();
            return;
        }
        requireNotNull(x, "x");
        const detail::QueriesOnHost host(
                set_->devices.context(0), x, size_t(n) * d);
        std::vector<std::unique_ptr<faiss::RangeSearchResult>> found(count());
        set_->devices.onEach([&](int part) {
            const idx_t first = sliceBegin(n, count(), part);
            const idx_t rows = sliceBegin(n, count(), part + 1) - first;
            if (rows == 0) {
                return;
            }
            found[part] = std::make_unique<faiss::RangeSearchResult>(rows);
            set_->replicas[part]->range_search(
                    rows,
                    host.data() + first * d,
                    radius,
                    found[part].get(),
                    filters(part));
        });
        detail::joinSlices(found, result);
    });
}

} // namespace faiss_bits::gpu
