/// Direct searches of lists in a CUDA graph, which is launched again and again:
/// what a search counts with in its scratch is set anew each time.

#include <cuda_runtime.h>

#include "tests/common/CapturedGraph.h"
#include "tests/ivf/DirectHarness.h"

namespace faiss_bits::test {
namespace {

class IvfGraph : public GpuTest {
   protected:
    /// Captures a search of this plan, launches it `launches` times into
    /// outputs that hold something else each time, and expects exact results of
    /// all.
    static void expectExact(
            const KernelLists& lists,
            const IvfKnnPlan& plan,
            IvfKnnProblem p) {
        constexpr int kLaunches = 3;
        const KernelCase& c = lists.c;
        const DeviceBuffer<float> distances(c.q * c.k, 0xA5);
        const DeviceBuffer<int64_t> ids(c.q * c.k, 0xA5);
        const DeviceBuffer<uint8_t> scratch(plan.bytes, 0xFF);
        p.outDistances = distances.data();
        p.outIds = ids.data();
        const TestStream stream;
        CapturedGraph graph(stream, [&] {
            runIvfKnn(plan, p, {scratch.data(), scratch.size()}, stream);
        });
        for (int i = 0; i < kLaunches; ++i) {
            BITS_CUDA_CHECK(cudaMemsetAsync(
                    distances.data(), i, c.q * c.k * sizeof(float), stream));
            BITS_CUDA_CHECK(cudaMemsetAsync(
                    ids.data(), i, c.q * c.k * sizeof(int64_t), stream));
            graph.launch();
            KernelResult found;
            found.distances = distances.download();
            found.ids = ids.download();
            SCOPED_TRACE(i);
            lists.expectExact(found);
        }
    }

    /// By a direct way.
    static void expectExact(const KernelCase& c, bool shared) {
        const KernelLists lists(c);
        const IvfKnnProblem p = lists.plainProblem();
        const IvfKnnPlan plan = planOf(p, false, shared);
        ASSERT_TRUE(plan.direct) << c;
        expectExact(lists, plan, p);
    }

    static KernelCase productCase(int q) {
        KernelCase c = someCase(uint32_t(q));
        c.coding = ListCoding::Product;
        c.layout = ListLayout::Rows;
        c.isResidual = true;
        c.d = 32;
        c.numParts = 16;
        c.q = q;
        return c;
    }
};

TEST_F(IvfGraph, SmallProductScans) {
    // Pairs are sorted by one block, or by kernels of their own: of more than
    // 4,096 of them.
    for (int q : {2, 9, 65, 256}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            for (int k : {1, 10, 128}) {
                KernelCase c = productCase(q);
                c.metric = metric;
                c.k = k;
                c.nprobe = q == 256 ? 17 : 6;
                const KernelLists lists(c);
                const IvfKnnProblem p = lists.plainProblem();
                const IvfKnnPlan plan = planOf(p, false, true);
                ASSERT_TRUE(plan.direct) << c;
                expectExact(lists, plan, p);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(IvfGraph, SmallProductScansOfHardValues) {
    // What has no bound, and what finds no room, takes other turns.
    for (ListFill fill :
         {ListFill::Equal, ListFill::Integers, ListFill::NotFinite}) {
        KernelCase c = productCase(7);
        c.fill = fill;
        c.lengths = unevenLengths(9, 700, 3);
        const KernelLists lists(c);
        const IvfKnnProblem p = lists.plainProblem();
        const IvfKnnPlan plan = planOf(p, false, true);
        ASSERT_TRUE(plan.direct) << c;
        expectExact(lists, plan, p);
    }
}

TEST_F(IvfGraph, SmallOtherDirectSearches) {
    struct Kind {
        ListCoding coding;
        ListLayout layout;
    };
    for (const Kind& kind :
         {Kind{ListCoding::Float32, ListLayout::Interleaved},
          Kind{ListCoding::Float32, ListLayout::Rows},
          Kind{ListCoding::Scalar8, ListLayout::Interleaved},
          Kind{ListCoding::Scalar4, ListLayout::Rows}}) {
        for (bool shared : {false, true}) {
            for (int k : {10, 140}) { // 140: distances are selected from
                // With few dimensions a lane has a vector.
                for (int d : {20, 33}) {
                    KernelCase c = someCase(uint32_t(k));
                    c.coding = kind.coding;
                    c.layout = kind.layout;
                    c.isResidual = isScalar(kind.coding);
                    c.k = k;
                    c.d = d;
                    expectExact(c, shared);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(IvfGraph, SmallTestsOfIds) {
    for (bool shared : {false, true}) {
        for (int d : {20, 33}) {
            KernelCase c = someCase(uint32_t(d));
            c.filter = KernelFilter::IdRange;
            c.selected = 0.4;
            c.d = d;
            expectExact(c, shared);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
