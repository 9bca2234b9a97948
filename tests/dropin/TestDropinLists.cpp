#include <thread>

#include "tests/common/CapturedGraph.h"
#include "tests/dropin/DropinListsHarness.h"

namespace faiss::gpu {

cudaStream_t GpuResources::getDefaultStreamCurrentDevice() {
    return stream;
}

} // namespace faiss::gpu

/// FAISS's scans of inverted lists on our kernels, with both kinds of lengths.
namespace faiss_bits::test {
namespace {

class DropinLists : public GpuTest {};

// Every path once, for compute-sanitizer (--gtest_filter=*Small*).
class DropinListsSmall : public GpuTest {};

/// Both layouts and metrics.
std::vector<ListCase> kindsOf(ListCase c) {
    std::vector<ListCase> cases;
    for (bool isL2 : {true, false}) {
        for (bool interleaved : {true, false}) {
            c.isL2 = isL2;
            c.interleaved = interleaved;
            cases.push_back(c);
        }
    }
    return cases;
}

/// Few queries; so many that they share lists; and with so long lists that
/// estimates come first.
std::vector<ListCase> pathsOf(ListCase c) {
    std::vector<ListCase> cases;
    for (int64_t q : {3, 70, 300}) {
        c.q = q;
        if (q == 300) {
            c.n = 20000;
            c.nprobe = 12;
            c.probes = Probes::Nearest;
        }
        for (const ListCase& one : kindsOf(c)) {
            cases.push_back(one);
        }
    }
    return cases;
}

TEST_F(DropinListsSmall, EveryPath) {
    for (const ListCase& c : pathsOf({})) {
        expectScans(c, Hard::Bytes);
        expectScans(c, Hard::Offset);
        if (HasFatalFailure()) {
            return;
        }
    }
}

TEST_F(DropinListsSmall, EveryKindOfIds) {
    using namespace faiss::gpu;
    for (IndicesOptions indices :
         {INDICES_CPU, INDICES_IVF, INDICES_32_BIT, INDICES_64_BIT}) {
        ListCase base;
        base.indices = indices;
        for (const ListCase& c : pathsOf(base)) {
            expectScans(c, Hard::Duplicates); // ties over lists
        }
    }
}

TEST_F(DropinLists, HardData) {
    for (Hard kind : kHard) {
        for (int d : {1, 33, 130}) {
            ListCase base;
            base.d = d;
            for (const ListCase& c : pathsOf(base)) {
                expectScans(c, kind);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

// On both sides of what the lists hold.
TEST_F(DropinLists, EveryK) {
    for (int k : {1, 2, 31, 32, 100, 1000, 2047, 2048}) {
        ListCase base;
        base.k = k;
        for (const ListCase& c : pathsOf(base)) {
            expectScans(c, Hard::Terrain);
        }
        base.n = 20000;
        base.q = 40;
        for (const ListCase& c : kindsOf(base)) {
            expectScans(c, Hard::Duplicates);
        }
    }
}

TEST_F(DropinLists, ListsThatThereAreNotAndListsTwice) {
    for (Probes probes : {Probes::None, Probes::Twice}) {
        for (int64_t q : {1, 5, 100}) {
            ListCase base;
            base.probes = probes;
            base.q = q;
            base.nprobe = 9;
            for (const ListCase& c : kindsOf(base)) {
                expectScans(c, Hard::Mixed);
            }
        }
    }
}

TEST_F(DropinLists, FewVectorsAndNone) {
    for (int64_t n : {0, 1, 31, 33}) {
        for (int numLists : {1, 2, 40}) {
            for (int64_t q : {2, 90}) {
                ListCase base;
                base.n = n;
                base.numLists = numLists;
                base.nprobe = numLists;
                base.q = q;
                for (const ListCase& c : kindsOf(base)) {
                    expectScans(c, Hard::Bytes);
                }
            }
        }
    }
}

TEST_F(DropinLists, NoQueries) {
    ListCase base;
    base.q = 0;
    for (const ListCase& c : kindsOf(base)) {
        expectScans(c, Hard::Bytes);
    }
}

TEST_F(DropinLists, AllLists) {
    ListCase base;
    base.n = 9000;
    base.numLists = 2048;
    base.nprobe = 2048;
    base.q = 20;
    for (const ListCase& c : kindsOf(base)) {
        expectScans(c, Hard::Clusters);
    }
}

TEST_F(DropinLists, TensorsAnywhereInMemory) {
    for (size_t shift : {1, 2, 3}) {
        ListCase base;
        base.shift = shift;
        for (const ListCase& c : pathsOf(base)) {
            expectScans(c, Hard::Offset);
        }
    }
}

// NaN and infinite distances are no results; what is left over is empty.
TEST_F(DropinLists, FewerResultsThanPlaces) {
    for (float odd : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
        for (const ListCase& c : pathsOf({})) {
            auto vectors = makeHard(Hard::Bytes, c.n, c.d, 1);
            for (int64_t i = 0; i < c.n; ++i) {
                if (i % 97) {
                    vectors[size_t(i * c.d + i % c.d)] = odd;
                }
            }
            // Positive ones, so that no sum is of both infinities.
            auto queries = makeHard(Hard::Bytes, c.q, c.d, 2);
            for (float& one : queries) {
                one += 1;
            }
            expectScansAs<int>(c, vectors, queries);
            expectScansAs<int64_t>(c, vectors, queries);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

// It has no FAISS to go to.
TEST_F(DropinLists, LeavesScalarQuantizersAlone) {
    ListData<int64_t> data(
            {},
            makeHard(Hard::Bytes, 3000, 24, 1),
            makeHard(Hard::Bytes, 3, 24, 2));
    EXPECT_THROW(data.call(nullptr, true), std::runtime_error);
}

ListCase manyQueries() {
    ListCase c;
    c.n = 60000;
    c.numLists = 100;
    c.q = 500;
    c.nprobe = 20;
    c.probes = Probes::Nearest;
    return c;
}

template <class Index>
std::unique_ptr<ListData<Index>> dataOf(const ListCase& c) {
    return std::make_unique<ListData<Index>>(
            c,
            makeHard(Hard::Terrain, c.n, c.d, 1),
            makeHard(Hard::Terrain, c.q, c.d, 2));
}

TEST_F(DropinLists, IsOrderedOnTheStream) {
    const TestStream stream;
    const auto data = dataOf<int64_t>(manyQueries());
    for (int i = 0; i < 5; ++i) {
        data->call(stream);
    }
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    ASSERT_TRUE(data->check());
}

// Lists may grow before a graph runs: FAISS's own function is captured, and
// nothing of ours.
TEST_F(DropinLists, UnderCaptureItIsLeftToFaiss) {
    for (int64_t q : {3, 500}) {
        ListCase base = manyQueries();
        base.q = q;
        for (const ListCase& c : kindsOf(base)) {
            const TestStream stream;
            const auto data = dataOf<int>(c);
            const CapturedGraph graph(stream, [&] {
                EXPECT_THROW(data->call(stream), std::runtime_error);
            });
            EXPECT_EQ(graph.numNodes(), 0u);
            data->call(stream);
            BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
            ASSERT_TRUE(data->check(4));
        }
    }
}

TEST_F(DropinLists, FromManyThreads) {
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([t, &wrong] {
            const TestStream stream;
            ListCase c = manyQueries();
            c.isL2 = t % 2 == 0;
            c.q = t < 2 ? 9 : 300;
            const auto data = dataOf<int>(c);
            for (int i = 0; i < 10; ++i) {
                data->clearOutputs();
                data->call(stream);
                BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
                wrong[t] += data->check(3) ? 0 : 1;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

} // namespace
} // namespace faiss_bits::test
