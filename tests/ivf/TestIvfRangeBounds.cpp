/// Range searches of lists by bounds (kernels/ivf/IvfRangeFound.h) and with all
/// distances, of every coding, against the canonical distances.

#include <algorithm>
#include <list>
#include <optional>

#include "kernels/ivf/IvfRangeFound.h"
#include "tests/ivf/IvfKernelHarness.h"

namespace faiss_bits::test {
namespace {

/// Keeps all that comes, and looks whether the parts fit together.
class Kept : public RangeSink {
   public:
    explicit Kept(idx_t queries) : queries_(queries) {}

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

constexpr size_t kMaxBytes = size_t(256) << 20;

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

    void expectExact(const Kept& found, float radius) const {
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
    bool runBounds(float radius, size_t maxBytes = kMaxBytes) const {
        const IvfKnnProblem p = problem();
        const std::optional<IvfFoundPlan> plan = planIvfFound(p, maxBytes);
        EXPECT_TRUE(plan.has_value());
        EXPECT_LE(plan->bytes, maxBytes);
        const DeviceBuffer<uint8_t> scratch(plan->bytes, 0xFF);
        const TestStream stream;
        WorkspaceSlices slices(Workspace{scratch.data(), scratch.size()});
        const IvfFoundSearch search(*plan, p, slices);
        Kept found(lists_.c.q);
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
        const IvfRangePlan plan = planIvfRange(p, kMaxBytes, way);
        EXPECT_EQ(plan.found.has_value(), way == IvfRangeWay::Bounds);
        const DeviceBuffer<uint8_t> scratch(plan.bytes, 0xFF);
        const TestStream stream;
        Kept found(lists_.c.q);
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

class IvfRangeBounds : public GpuTest {};

constexpr ListCoding kCodings[] = {
        ListCoding::Float32,
        ListCoding::Float16,
        ListCoding::Scalar8,
        ListCoding::Scalar6,
        ListCoding::Scalar4,
        ListCoding::Product};

KernelCase someCase(Metric metric, ListCoding coding, ListLayout layout) {
    KernelCase c;
    c.metric = metric;
    c.coding = coding;
    c.layout = layout;
    c.numParts = 11;
    c.lengths = unevenLengths(16, 60, 5);
    c.idKind = layout == ListLayout::Rows ? ListIds::Places : ListIds::Given32;
    return c;
}

TEST_F(IvfRangeBounds, EveryCodingAndRadius) {
    const float inf = HUGE_VALF;
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (ListCoding coding : kCodings) {
            for (ListLayout layout :
                 {ListLayout::Interleaved, ListLayout::Rows}) {
                if (coding == ListCoding::Scalar6 &&
                    layout == ListLayout::Rows) {
                    continue; // there is none
                }
                const RangeCase some(someCase(metric, coding, layout));
                for (double part : {0.0, 0.01, 0.04}) {
                    EXPECT_TRUE(some.runBounds(some.radius(part)));
                }
                EXPECT_FALSE(some.runBounds(some.radius(0.5)));
                for (float radius :
                     {some.radius(0.01), some.radius(0.6), inf, -inf, 0.0f}) {
                    some.run(IvfRangeWay::Bounds, radius);
                    some.run(IvfRangeWay::Distances, radius);
                }
            }
        }
    }
}

/// A few of each coding, for compute-sanitizer, whose racecheck takes minutes
/// for all of them at once.
class IvfRangeCodings : public GpuTest,
                        public testing::WithParamInterface<ListCoding> {};

TEST_P(IvfRangeCodings, SmallBothWays) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (ListLayout layout : {ListLayout::Interleaved, ListLayout::Rows}) {
            if (GetParam() == ListCoding::Scalar6 &&
                layout == ListLayout::Rows) {
                continue; // there is none
            }
            KernelCase c = someCase(metric, GetParam(), layout);
            c.lengths = unevenLengths(16, 40, 5);
            const RangeCase some(c);
            EXPECT_TRUE(some.runBounds(some.radius(0.01), some.leastScratch()));
            some.run(IvfRangeWay::Distances, some.radius(0.3));
        }
    }
}

std::string nameOf(const testing::TestParamInfo<ListCoding>& info) {
    static const char* const names[] = {
            "Float32", "Float16", "Scalar8", "Scalar6", "Scalar4", "Product"};
    return names[int(info.param)];
}

INSTANTIATE_TEST_SUITE_P(
        Each,
        IvfRangeCodings,
        testing::ValuesIn(kCodings),
        nameOf);

/// What has no bound, or a wide one, is looked at, and nothing is lost.
TEST_F(IvfRangeBounds, SmallEveryFill) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int fill = 0; fill <= int(ListFill::NotFinite); ++fill) {
            KernelCase c = someCase(
                    metric, ListCoding::Float32, ListLayout::Interleaved);
            c.fill = ListFill(fill);
            const RangeCase some(c);
            for (double part : {0.0, 0.02, 0.3, 1.0}) {
                some.run(IvfRangeWay::Bounds, some.radius(part));
            }
            some.runBounds(some.radius(0.02));
        }
    }
}

TEST_F(IvfRangeBounds, SmallFiltered) {
    for (double selected : {0.02, 0.5, 0.97}) {
        KernelCase c = someCase(
                Metric::L2, ListCoding::Float32, ListLayout::Interleaved);
        c.selected = selected;
        c.evenWords = selected == 0.5;
        const RangeCase some(c);
        for (double part : {0.0, 0.05, 1.0}) {
            some.run(IvfRangeWay::Bounds, some.radius(part));
        }
        EXPECT_TRUE(some.runBounds(some.radius(0.05)));
    }
}

TEST_F(IvfRangeBounds, Dims) {
    for (int d : {1, 2, 16, 17, 127, 128, 129, 300}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            KernelCase c = someCase(
                    metric, ListCoding::Float32, ListLayout::Interleaved);
            c.d = d;
            c.q = 130;
            const RangeCase some(c);
            for (double part : {0.001, 0.03}) {
                some.run(IvfRangeWay::Bounds, some.radius(part));
            }
            EXPECT_TRUE(some.runBounds(some.radius(0.01)));
        }
    }
}

/// One list that a query names again and again: each vector as often, in the
/// order of the probes.
TEST_F(IvfRangeBounds, SmallListsThatAreNamedTwice) {
    KernelCase c =
            someCase(Metric::L2, ListCoding::Float32, ListLayout::Interleaved);
    for (int lists : {1, 2, 3}) {
        c.lengths.assign(size_t(lists), 40);
        const RangeCase some(c); // sixteen probes of these
        EXPECT_TRUE(some.runBounds(some.radius(0.03)));
        some.run(IvfRangeWay::Bounds, some.radius(0.9));
    }
}

/// Some queries have more in range than there is room for: what is found lies
/// side by side then.
TEST_F(IvfRangeBounds, SmallFewQueriesWithMuchInRange) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        KernelCase c =
                someCase(metric, ListCoding::Float32, ListLayout::Interleaved);
        c.lengths.assign(16, 300);
        c.d = 16;
        c.q = 70;
        RangeCase some(c);
        std::mt19937 random(3);
        std::uniform_real_distribution<float> unit(-1, 1);
        std::vector<float> queries(size_t(c.q) * c.d);
        for (idx_t i = 0; i < c.q; ++i) {
            // Near the middle, or long: these have most of what is in range.
            const bool isNear = metric == Metric::L2;
            const float scale = (i % 23 == 5) == isNear ? 0.1f : 3.0f;
            for (int j = 0; j < c.d; ++j) {
                queries[i * c.d + j] = scale * unit(random);
            }
        }
        some.setQueries(queries);
        const float radius = some.radius(0.02);
        const size_t least = some.leastScratch();
        const auto plan = planIvfFound(some.problem(), least);
        ASSERT_TRUE(plan);
        EXPECT_GT(some.mostInRange(radius), plan->search.room);
        EXPECT_TRUE(some.runBounds(radius, least));
        // Room for what is found, but not for as many candidates.
        for (const size_t bytes : {2 * least, 4 * least, 8 * least}) {
            const auto more = planIvfFound(some.problem(), bytes);
            ASSERT_TRUE(more);
            EXPECT_GT(some.mostInRange(radius), more->search.candidates);
            EXPECT_GT(more->search.room, more->search.candidates);
            EXPECT_TRUE(some.runBounds(radius, bytes));
            EXPECT_TRUE(
                    bytes < 8 * least ||
                    more->search.room >= some.mostInRange(radius));
        }
        EXPECT_TRUE(some.runBounds(radius));
        some.run(IvfRangeWay::Bounds, radius);
    }
}

/// Scratch for some queries at a time; what is behind the last part's rows is
/// as it was.
TEST_F(IvfRangeBounds, Parts) {
    KernelCase c = someCase(
            Metric::InnerProduct, ListCoding::Scalar8, ListLayout::Interleaved);
    c.lengths.assign(40, 70);
    c.q = 1001;
    const RangeCase some(c);
    const float radius = some.radius(0.01);
    const auto whole = planIvfFound(some.problem(), kMaxBytes);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->search.rowsAtATime, c.q);
    const size_t least = some.leastScratch();
    EXPECT_LT(least, whole->bytes);
    for (int share : {2, 5, 9}) {
        EXPECT_TRUE(some.runBounds(radius, least / share));
        EXPECT_GT(some.parts(), share - 1);
    }
    EXPECT_FALSE(planIvfFound(some.problem(), least / 40));
}

} // namespace
} // namespace faiss_bits::test
