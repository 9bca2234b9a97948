#pragma once

#include <algorithm>
#include <list>
#include <optional>

#include "kernels/ivf/IvfRangeFound.h"
#include "tests/ivf/IvfKernelHarness.h"

/// Range searches of lists of a test's own, without FAISS, against the
/// canonical distances.
namespace faiss_bits::test {

/// Keeps all that comes, and looks whether the parts fit together.
class KeptRanges : public RangeSink {
   public:
    explicit KeptRanges(idx_t queries) : queries_(queries) {}

    RangeRoom room(const RangePart& part) override {
        distances_.emplace_back(part.total, 0xA5);
        ids_.emplace_back(part.total, 0xA5);
        return {distances_.back().data(), ids_.back().data()};
    }

    void take(const RangePart& part, const RangeRoom& room) override {
        ASSERT_EQ(part.first, idx_t(counts.size()));
        counts.insert(counts.end(), part.counts.begin(), part.counts.end());
        ASSERT_LE(idx_t(counts.size()), queries_);
        if (room.distances) {
            BITS_CUDA_CHECK(cudaDeviceSynchronize());
            const auto some = distances_.back().download();
            const auto theirs = ids_.back().download();
            distances.insert(distances.end(), some.begin(), some.end());
            ids.insert(ids.end(), theirs.begin(), theirs.end());
        }
        ++parts;
    }

    std::vector<idx_t> counts;
    std::vector<float> distances;
    std::vector<int64_t> ids;
    int parts = 0;

   private:
    const idx_t queries_;
    std::list<DeviceBuffer<float>> distances_;
    std::list<DeviceBuffer<int64_t>> ids_;
};

inline constexpr size_t kMostRangeBytes = size_t(256) << 20;

class RangeCase {
   public:
    explicit RangeCase(const KernelCase& c) : lists_(c) {
        setQueries(lists_.queries());
    }

    void setQueries(const std::vector<float>& queries) {
        queries_ = queries;
        device_ = DeviceBuffer<float>(queries_);
        all_.clear();
        for (idx_t i = 0; i < lists_.c.q; ++i) {
            all_.push_back(
                    lists_.reachable(i, queries_.data() + i * lists_.c.d));
        }
    }

    IvfKnnProblem problem() const {
        IvfKnnProblem p = lists_.plainProblem();
        p.queries = device_.data();
        p.k = 1;
        return p;
    }

    /// One that leaves about this part of the pairs inside.
    float radius(double part) const {
        std::vector<float> keys;
        for (const auto& row : all_) {
            for (const Ranked& one : row) {
                keys.push_back(float(one.key));
            }
        }
        std::sort(keys.begin(), keys.end());
        if (isIP()) {
            std::reverse(keys.begin(), keys.end());
        }
        return keys[size_t(part * double(keys.size() - 1))];
    }

    void expectExact(const KeptRanges& found, float radius) const {
        ASSERT_EQ(idx_t(found.counts.size()), lists_.c.q);
        size_t at = 0;
        for (idx_t i = 0; i < lists_.c.q; ++i) {
            const size_t first = at;
            for (const Ranked& one : all_[size_t(i)]) {
                const auto distance = float(one.key);
                if (isIP() ? distance > radius : distance < radius) {
                    ASSERT_LT(at, found.ids.size());
                    ASSERT_EQ(found.ids[at], one.id)
                            << "query " << i << " of " << lists_.c;
                    ASSERT_EQ(found.distances[at], distance)
                            << "query " << i << " of " << lists_.c;
                    ++at;
                }
            }
            ASSERT_EQ(found.counts[size_t(i)], idx_t(at - first))
                    << "query " << i << " of " << lists_.c;
        }
        EXPECT_EQ(at, found.ids.size());
    }

    /// Of the query that has most.
    idx_t mostInRange(float radius) const {
        idx_t most = 0;
        for (const auto& row : all_) {
            most = std::max<idx_t>(
                    most,
                    std::count_if(
                            row.begin(), row.end(), [&](const Ranked& one) {
                                return isIP() ? one.key > radius
                                              : one.key < radius;
                            }));
        }
        return most;
    }

    /// For all queries at a time, with no more room for each than need be.
    size_t leastScratch() const {
        size_t bytes = size_t(1) << 16;
        for (;; bytes += bytes / 16) {
            const auto plan = planIvfFound(problem(), bytes);
            if (plan && plan->search.rowsAtATime == lists_.c.q) {
                return bytes;
            }
        }
    }

    /// By bounds alone; false: it left the search to all distances.
    bool runBounds(float radius, size_t maxBytes = kMostRangeBytes) const {
        const IvfKnnProblem p = problem();
        const std::optional<IvfFoundPlan> plan = planIvfFound(p, maxBytes);
        EXPECT_TRUE(plan.has_value());
        EXPECT_LE(plan->bytes, maxBytes);
        const DeviceBuffer<uint8_t> scratch(plan->bytes, 0xFF);
        const TestStream stream;
        WorkspaceSlices slices(Workspace{scratch.data(), scratch.size()});
        const IvfFoundSearch search(*plan, p, slices);
        KeptRanges found(lists_.c.q);
        for (idx_t q = 0; q < p.numQueries; q += plan->search.rowsAtATime) {
            const idx_t rows =
                    std::min(plan->search.rowsAtATime, p.numQueries - q);
            if (!search.run(q, rows, radius, found, stream)) {
                EXPECT_EQ(idx_t(found.counts.size()), q);
                return false;
            }
        }
        expectExact(found, radius);
        parts_ = found.parts;
        return true;
    }

    /// Parts of the last search by bounds alone.
    int parts() const {
        return parts_;
    }

    void run(IvfRangeWay way, float radius) const {
        SCOPED_TRACE(int(way));
        const IvfKnnProblem p = problem();
        const IvfRangePlan plan = planIvfRange(p, kMostRangeBytes, way);
        EXPECT_EQ(plan.found.has_value(), way == IvfRangeWay::Bounds);
        const DeviceBuffer<uint8_t> scratch(plan.bytes, 0xFF);
        const TestStream stream;
        KeptRanges found(lists_.c.q);
        runIvfRange(
                plan,
                p,
                radius,
                Workspace{scratch.data(), scratch.size()},
                stream,
                found);
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        expectExact(found, radius);
    }

    bool isIP() const {
        return lists_.c.metric == Metric::InnerProduct;
    }

   private:
    KernelLists lists_;
    std::vector<float> queries_;
    DeviceBuffer<float> device_;
    std::vector<std::vector<Ranked>> all_; // of each query
    mutable int parts_ = 0;
};

} // namespace faiss_bits::test
