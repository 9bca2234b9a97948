/// Direct searches that find their lists themselves, by centroids
/// (kernels/ivf/IvfDirectLists.cu).

#include <string>

#include "tests/common/ExpectError.h"
#include "tests/ivf/DirectHarness.h"

namespace faiss_bits::test {
namespace {

/// The lists of a search by centroids against those that the definition gives.
class IvfDirectCentroids : public GpuTest {
   protected:
    /// Whether queries can share lists.
    static bool isShared(const KernelCase& c) {
        return c.q > 1 && c.d <= 1024;
    }

    /// Queries by themselves are fewer.
    static bool isAlone(const KernelCase& c) {
        return c.q <= 256;
    }

    /// more: columns of a row behind those that it can have.
    void expectNearest(
            const KernelCase& c,
            Metric metric,
            ListFill fill,
            idx_t more = 0) {
        const KernelLists lists(c);
        const int numLists = int(c.lengths.size());
        const auto centroids = fillRows(fill, numLists, c.d, c.seed + 77);
        IvfKnnProblem p = lists.plainProblem();
        const std::vector<float> queries = lists.queries();
        std::vector<int64_t> probes;
        for (idx_t i = 0; i < c.q; ++i) {
            std::vector<Ranked> ranked;
            for (int l = 0; l < numLists; ++l) {
                const float distance = canonicalDistance(
                        metric,
                        0,
                        queries.data() + i * c.d,
                        centroids.data() + size_t(l) * c.d,
                        c.d);
                if (!std::isnan(distance)) {
                    ranked.push_back({double(distance), l});
                }
            }
            const auto best =
                    topK(ranked, c.nprobe, metric == Metric::InnerProduct);
            for (int k = 0; k < c.nprobe; ++k) {
                probes.push_back(k < int(best.size()) ? best[k].id : -1);
            }
        }
        const DeviceBuffer<float> onDevice(centroids);
        const DeviceBuffer<int64_t> given(probes);
        p.mostVectors = more;
        for (int length : c.lengths) {
            p.mostVectors += length;
        }
        p.probes = given.data();
        const KernelResult expected = lists.run(planOfAll(p), p);
        p.probes = nullptr;
        p.centroids = onDevice.data();
        p.centroidMetric = metric;
        const auto expectSame = [&](const IvfKnnPlan& plan) {
            // Whatever the scratch holds: what is 0 would be the least.
            EXPECT_TRUE(lists.run(plan, p).sameAs(expected)) << c;
            EXPECT_TRUE(lists.run(plan, p, 0).sameAs(expected)) << c;
        };
        for (bool shared : {false, true}) {
            const IvfKnnPlan plan = planOf(p, true, shared);
            ASSERT_EQ(plan.findsLists(), shared ? isShared(c) : isAlone(c))
                    << c;
            if (plan.findsLists()) {
                expectSame(plan);
            }
        }
        const IvfKnnPlan tables = planOf(p, true, false, kMostBytes, true);
        if (tables.findsLists()) {
            expectSame(tables);
        }
    }
};

TEST_F(IvfDirectCentroids, SmallListsAreTheNearest) {
    for (ListFill fill :
         {ListFill::Uniform,
          ListFill::Integers,
          ListFill::Equal,
          ListFill::NotFinite}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            for (int nprobe : {1, 5, 33}) {
                KernelCase c = someCase(uint32_t(nprobe));
                c.fill = fill;
                c.d = 11;
                c.lengths = unevenLengths(33, 50, c.seed);
                c.nprobe = nprobe;
                expectNearest(c, metric, fill);
            }
        }
    }
}

TEST_F(IvfDirectCentroids, ManyLists) {
    for (int numLists : {255, 256, 257, 1024, 4095, 4096}) {
        for (int nprobe : {1, 32, 128, 255, 256}) {
            for (ListFill fill : {ListFill::Uniform, ListFill::Integers}) {
                KernelCase c = someCase(uint32_t(numLists + nprobe));
                c.fill = fill;
                c.d = fill == ListFill::Integers ? 3 : 40;
                c.q = 3;
                c.lengths = unevenLengths(numLists, 6, c.seed);
                c.nprobe = std::min(nprobe, numLists);
                expectNearest(c, Metric::L2, fill);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(IvfDirectCentroids, Dims) {
    for (int d : {1, 7, 8, 64, 127, 128, 129, 256, 1000, 4096}) {
        KernelCase c = someCase(uint32_t(d));
        c.d = d;
        c.lengths = unevenLengths(40, 20, c.seed);
        expectNearest(c, Metric::L2, ListFill::Uniform);
        expectNearest(c, Metric::InnerProduct, ListFill::Uniform);
    }
}

/// What the finish reads before it knows how many columns there are: of no more
/// than 4,096 groups, and 256 queries.
TEST_F(IvfDirectCentroids, SmallRowsEndBeforeTheirRoom) {
    for (int q : {1, 255, 256, 257}) {
        for (idx_t more : {0, 32, 4000, 150000}) {
            KernelCase c = someCase(uint32_t(q));
            c.d = 8;
            c.q = q;
            c.lengths = unevenLengths(12, 90, c.seed);
            c.nprobe = 3;
            if (q < 100 || more < 10000) { // else keys take too much
                expectNearest(c, Metric::L2, ListFill::Uniform, more);
            }
        }
    }
}

TEST_F(IvfDirectCentroids, RowsOfManyGroups) {
    for (int length : {65000, 66000}) { // 4,067 groups and 4,129
        KernelCase c = someCase(uint32_t(length));
        c.d = 4;
        c.q = 2;
        c.lengths = {length, 10, length + 64, 0};
        c.nprobe = 4;
        expectNearest(c, Metric::L2, ListFill::Uniform);
        expectNearest(c, Metric::InnerProduct, ListFill::Integers, 1000);
    }
}

TEST_F(IvfDirectCentroids, SmallRowsOfCodesEndBeforeTheirRoom) {
    for (ListCoding coding : {ListCoding::Scalar8, ListCoding::Product}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            for (ListIds kind :
                 {ListIds::Given64, ListIds::Given32, ListIds::Places}) {
                KernelCase c = someCase(uint32_t(kind) + 31);
                c.coding = coding;
                c.layout = coding == ListCoding::Product
                        ? ListLayout::Rows
                        : ListLayout::Interleaved;
                c.metric = metric;
                c.idKind = kind;
                c.d = 64;
                c.numParts = 16;
                c.lengths = unevenLengths(20, 300, c.seed);
                expectNearest(c, metric, ListFill::Uniform, 3000);
            }
        }
    }
}

/// A block has what it wants of all lists before it knows the nearest, of up to
/// 2,048; centroids that tie, or are no numbers.
TEST_F(IvfDirectCentroids, ManyListsOfProductCodes) {
    for (int numLists : {1, 511, 512, 513, 2047, 2048, 2049}) {
        for (int nprobe : {1, 33, 256}) {
            for (ListFill fill :
                 {ListFill::Uniform, ListFill::Integers, ListFill::NotFinite}) {
                for (int q : {1, 3}) {
                    KernelCase c = someCase(uint32_t(numLists + nprobe + q));
                    c.coding = ListCoding::Product;
                    c.layout = ListLayout::Rows;
                    c.fill = fill;
                    c.d = 16;
                    c.numParts = 8;
                    c.q = q;
                    c.lengths = unevenLengths(numLists, 40, c.seed);
                    c.nprobe = std::min(nprobe, numLists);
                    expectNearest(c, Metric::L2, fill);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(IvfDirectCentroids, SmallMissingOnesAreNamed) {
    KernelCase c = someCase(5);
    c.nprobe = 3;
    const KernelLists lists(c);
    IvfKnnProblem p = lists.plainProblem();
    const DeviceBuffer<float> centroids(
            fillRows(ListFill::Uniform, 16, c.d, 1));
    p.centroids = centroids.data();
    const IvfKnnPlan plan = planOf(p, true, false);
    ASSERT_TRUE(plan.findsLists());
    p.centroids = nullptr;
    EXPECT_TRUE(throwsNaming([&] { lists.run(plan, p); }, "centroids"));
    p.probes = nullptr;
    EXPECT_TRUE(throwsNaming(
            [&] { lists.run(planOf(p, false, false), p); }, "probes"));
}

} // namespace
} // namespace faiss_bits::test
