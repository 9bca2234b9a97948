/// Rows with gaps, subsets by id, no vectors, no queries, and offsets beyond
/// 2^31 and 2^32 elements.

#include <sys/mman.h>

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cpu/CpuHarness.h"

namespace faiss_bits::test {
namespace {

class CpuLayout : public ::testing::TestWithParam<Metric> {};

/// Every layout of both sides. What lies between the rows and in rows that are
/// not named is NaN; ids in results are row numbers.
TEST_P(CpuLayout, GapsAndSubsets) {
    forBothTypes([&](auto zero) {
        using T = decltype(zero);
        uint32_t seed = 0;
        for (int layout = 0; layout < 32; ++layout) {
            CpuCase c;
            c.metric = GetParam();
            c.metricArg = 3;
            c.queryGap = layout & 1 ? 3 : 0;
            c.vectorGap = layout & 2 ? 17 : 0;
            c.pickQueries = layout & 4;
            c.pickVectors = layout & 8;
            c.repeatVectors = c.pickVectors && (layout & 16);
            c.q = layout % 3 ? 14 : 2;
            c.n = 150;
            c.d = 9 + layout % 4;
            c.k = layout % 5 ? 20 : 155;
            c.contents = layout % 2 ? Contents::FewDistinct : Contents::Uniform;
            c.seed = ++seed;
            const CpuData<T> data(c);
            for (cpu::Variant variant : kCpuVariants) {
                for (cpu::Choice choice : choicesOf(variant)) {
                    choice.vectorBlock = layout % 3 ? 0 : 64;
                    const int threads = 1 + layout % 3;
                    ASSERT_TRUE(data.check(data.run(choice, threads)))
                            << describe(choice, threads);
                }
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(
        Cpu,
        CpuLayout,
        ::testing::ValuesIn(kCpuMetrics),
        [](const auto& info) { return metricName(info.param); });

/// Copies rows one behind the other.
template <class T>
std::vector<T> copied(const CpuRows<T>& rows, int d) {
    std::vector<T> values;
    for (idx_t i = 0; i < rows.count; ++i) {
        values.insert(values.end(), rows.row(i), rows.row(i) + d);
    }
    return values;
}

/// A search of picked rows with gaps equals that of a copy of them.
template <class T>
void expectSubsetEqualsCopy(const CpuCase& c, const cpu::Choice& choice) {
    const CpuData<T> data(c);
    const auto queries = copied(data.queries(), c.d);
    const auto vectors = copied(data.vectors(), c.d);
    SCOPED_TRACE(c.describe());
    SCOPED_TRACE(describe(choice, 1));
    auto p = data.problem(choice, 1);
    const auto subset = CpuData<T>::run(p);
    p.queries = queries.data();
    p.vectors = vectors.data();
    p.queryIds = p.vectorIds = nullptr;
    p.queryStride = p.vectorStride = 0;
    auto copy = CpuData<T>::run(p);
    for (idx_t& id : copy.ids) {
        id = id < 0 ? id : data.vectors().ids[id];
    }
    // Equal distances are in the order of other ids, and one that has no place
    // may equal the last.
    const auto isTie = [&](size_t i, size_t other) {
        const T x = copy.distances[i];
        const T y = copy.distances[other];
        return !(x < y) && !(y < x);
    };
    for (size_t i = 0; i < copy.ids.size(); ++i) {
        const size_t place = i % c.k;
        if (place + 1 == size_t(c.k) || isTie(i, i + 1) ||
            (place > 0 && isTie(i, i - 1))) {
            copy.ids[i] = subset.ids[i];
        }
    }
    EXPECT_TRUE(subset == copy);
}

/// A subset gives what a copy of its rows gives, to the bit.
TEST(CpuSubset, EqualsACopyOfTheRows) {
    for (Metric metric : kCpuMetrics) {
        CpuCase c;
        c.metric = metric;
        c.q = 30;
        c.n = 400;
        c.d = 19;
        c.k = 25;
        c.contents = Contents::Uniform;
        c.queryGap = 2;
        c.vectorGap = 6;
        c.pickQueries = c.pickVectors = true;
        for (cpu::Variant variant : kCpuVariants) {
            cpu::Choice choice;
            choice.variant = variant;
            expectSubsetEqualsCopy<float>(c, choice);
        }
    }
}

/// Few components have kernels of their own where rows are one behind the
/// other, and are packed otherwise; distances keep the bits that they have
/// elsewhere, the sign of zero among them.
TEST(CpuSubset, EqualsACopyOfShortRows) {
    forBothTypes([&](auto zero) {
        using T = decltype(zero);
        for (Metric metric : kCpuMetrics) {
            for (int d :
                 {1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 31, 32, 33, 65, 127}) {
                for (idx_t n : {15, 64, 77}) {
                    for (Contents contents :
                         {Contents::Uniform, Contents::Mixed}) {
                        CpuCase c;
                        c.metric = metric;
                        c.metricArg = 3;
                        c.mode = SearchMode::Plain;
                        c.q = 2;
                        c.n = n;
                        c.d = d;
                        c.k = n;
                        c.contents = contents;
                        c.pickQueries = c.pickVectors = true;
                        c.seed = 100 + d;
                        for (cpu::Variant variant :
                             {cpu::Variant::Direct, cpu::Variant::Buffered}) {
                            for (const cpu::Choice& choice :
                                 choicesOf(variant)) {
                                expectSubsetEqualsCopy<T>(c, choice);
                            }
                        }
                    }
                }
            }
        }
    });
}

/// The solvers of all nearest neighbours search a set in itself.
TEST(CpuSubset, QueriesMayBeTheVectors) {
    CpuCase c;
    c.n = 60;
    c.q = 60;
    c.d = 11;
    c.k = 5;
    c.contents = Contents::Uniform;
    c.pickVectors = true;
    const CpuData<float> data(c);
    auto p = data.problem({}, 2);
    p.queries = p.vectors;
    p.queryIds = p.vectorIds;
    const auto result = CpuData<float>::run(p);
    for (idx_t i = 0; i < c.q; ++i) {
        EXPECT_EQ(result.ids[i * c.k], data.vectors().ids[i]);
    }
}

TEST(CpuEmpty, NoQueriesWriteNothing) {
    for (cpu::Variant variant : kCpuVariants) {
        for (const cpu::Choice& choice : choicesOf(variant)) {
            cpu::KnnProblem<float> p;
            p.numVectors = 10;
            p.d = 3;
            p.k = 2;
            p.choice = choice;
            const std::vector<float> vectors(30);
            p.vectors = vectors.data();
            float distance = 5; // one that must stay
            idx_t id = 6;
            p.outDistances = &distance;
            p.outIds = &id;
            cpu::runKnn(p);
            EXPECT_EQ(distance, 5);
            EXPECT_EQ(id, 6);
            // With nothing to read or write, the arrays need not exist.
            p.outDistances = nullptr;
            p.outIds = nullptr;
            EXPECT_NO_THROW(cpu::runKnn(p)) << describe(choice, 1);
            p.choice.variant = cpu::Variant::Auto;
            const auto range = cpu::runRange<float>(p, 1);
            EXPECT_EQ(range.limits, std::vector<idx_t>{0});
        }
    }
}

TEST(CpuEmpty, NoVectorsGiveSentinels) {
    for (Metric metric : kCpuMetrics) {
        for (cpu::Variant variant : kCpuVariants) {
            for (const cpu::Choice& choice : choicesOf(variant)) {
                const std::vector<double> queries(26, 1.0);
                cpu::KnnProblem<double> p;
                p.metric = metric;
                p.numQueries = 13;
                p.d = 2;
                p.k = 3;
                p.queries = queries.data();
                p.choice = choice;
                SCOPED_TRACE(metricName(metric));
                SCOPED_TRACE(describe(choice, 1));
                const auto result = CpuData<double>::run(p);
                const double most = std::numeric_limits<double>::max();
                const double sentinel = isSimilarity(metric) ? -most : most;
                EXPECT_EQ(result.distances, std::vector<double>(39, sentinel));
                EXPECT_EQ(result.ids, std::vector<idx_t>(39, -1));
                p.choice.variant = cpu::Variant::Auto;
                const auto range = cpu::runRange<double>(p, 1);
                EXPECT_EQ(range.limits, std::vector<idx_t>(14, 0));
                EXPECT_TRUE(range.ids.empty() && range.distances.empty());
            }
        }
    }
}

/// Zeroed address space of which only touched pages take memory.
class SparseFloats {
   public:
    explicit SparseFloats(size_t count) : bytes_(count * sizeof(float)) {
        void* at =
                mmap(nullptr,
                     bytes_,
                     PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                     -1,
                     0);
        data_ = at == MAP_FAILED ? nullptr : static_cast<float*>(at);
    }
    SparseFloats(const SparseFloats&) = delete;
    SparseFloats& operator=(const SparseFloats&) = delete;
    ~SparseFloats() {
        if (data_) {
            munmap(data_, bytes_);
        }
    }
    float* data() const {
        return data_;
    }

   private:
    size_t bytes_;
    float* data_ = nullptr;
};

/// Rows 2^28 elements apart: the last of 20 is beyond 2^32 elements.
TEST(CpuFar, OffsetsBeyondFourBillionElements) {
    const idx_t stride = idx_t(1) << 28;
    const idx_t count = 20;
    const int d = 5;
    const SparseFloats memory(count * stride);
    if (!memory.data()) {
        GTEST_SKIP() << "no 20 GiB of address space to be had";
    }
    for (idx_t i = 0; i < count; ++i) {
        memory.data()[i * stride] = float(i + 1);
        memory.data()[i * stride + d - 1] = 2;
    }
    for (Metric metric : kCpuMetrics) {
        for (cpu::Variant variant : kCpuVariants) {
            cpu::KnnProblem<float> p;
            p.metric = metric;
            p.metricArg = 3;
            p.numQueries = p.numVectors = count;
            p.d = d;
            p.queries = p.vectors = memory.data();
            p.queryStride = p.vectorStride = stride;
            p.k = 1;
            p.choice.variant = variant;
            const auto result = CpuData<float>::run(p);
            for (idx_t i = 0; i < count; ++i) {
                const bool best = metric == Metric::InnerProduct;
                ASSERT_EQ(result.ids[i], best ? count - 1 : i)
                        << metricName(metric) << " " << describe(p.choice, 0);
            }
        }
    }
}

/// More pairs of a query and a vector than 32 bits count: points of a grid
/// against themselves.
TEST(CpuFar, MoreThanFourBillionPairs) {
    const idx_t count = 70000;
    const idx_t width = 256;
    const int d = 4;
    std::vector<float> points(count * d, 1.f);
    for (idx_t i = 0; i < count; ++i) {
        points[i * d] = float(i % width);
        points[i * d + 3] = float(i / width);
    }
    cpu::KnnProblem<float> p;
    p.numQueries = p.numVectors = count;
    p.d = d;
    p.queries = p.vectors = points.data();
    p.k = 2;
    const auto result = CpuData<float>::run(p);
    for (idx_t i = 0; i < count; ++i) {
        // Itself, and the neighbour at distance 1 that has the least id.
        const idx_t second = i >= width ? i - width : i > 0 ? i - 1 : 1;
        ASSERT_EQ(result.ids[2 * i], i);
        ASSERT_EQ(result.ids[2 * i + 1], second) << "query " << i;
        ASSERT_EQ(result.distances[2 * i], 0.f);
        ASSERT_EQ(result.distances[2 * i + 1], 1.f);
    }
}

} // namespace
} // namespace faiss_bits::test
