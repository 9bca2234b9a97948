/// Searches by the canonical distances of all pairs, enqueued one behind
/// another without a wait, in one scratch: their two kernels go to the device
/// as one, whose queries, filters, k and results change from call to call.

#include <memory>

#include "tests/common/CapturedGraph.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

class DirectTogether : public FlatKnnCertified {
   protected:
    static constexpr int kQueries = 5;
    static constexpr size_t kScratch = size_t(8) << 20;

    /// One of a filter's lists: the vectors whose number is a multiple.
    struct List {
        int allowedOf;
        std::unique_ptr<DeviceBuffer<int32_t>> ids;
        std::unique_ptr<DeviceBuffer<uint32_t>> bits;
    };

    struct Call {
        int query = 0; // the first
        int count = 1; // of queries
        int list = 0;
        int k = 10;
    };

    struct Output {
        explicit Output(size_t size) : distances(size, 0xA5), ids(size, 0xA5) {}
        KnnResult download() const {
            return {distances.download(), ids.download()};
        }
        DeviceBuffer<float> distances;
        DeviceBuffer<int64_t> ids;
    };

    void prepare() override {
        FlatKnnCertified::prepare();
        shape_ = caseOf(Direct::Always, Metric::L2, 9001, kQueries, 72, 10);
        vectors_ = makeHard(Hard::Mixed, shape_.n, shape_.d, 1);
        queries_ = makeHard(Hard::Mixed, shape_.q, shape_.d, 2);
        onDevice_ = std::make_unique<DeviceBuffer<float>>(vectors_);
        queriesOnDevice_ = std::make_unique<DeviceBuffer<float>>(queries_);
        scratch_ = std::make_unique<DeviceBuffer<uint8_t>>(kScratch);
        for (const int allowedOf : {1, 2, 7, 100, 5000}) {
            std::vector<int32_t> ids;
            std::vector<uint32_t> bits((shape_.n + 31) / 32);
            for (int64_t i = 0; i < shape_.n; i += allowedOf) {
                ids.push_back(int32_t(i));
                bits[i / 32] |= 1u << i % 32;
            }
            lists_.push_back(
                    {allowedOf,
                     std::make_unique<DeviceBuffer<int32_t>>(ids),
                     std::make_unique<DeviceBuffer<uint32_t>>(bits)});
        }
    }

    void TearDown() override {
        onDevice_.reset();
        queriesOnDevice_.reset();
        scratch_.reset();
        lists_.clear();
        FlatKnnCertified::TearDown();
    }

    /// k on both sides of what a block finishes in registers, and of what one
    /// block finishes at all.
    std::vector<Call> makeCalls() const {
        std::vector<Call> calls;
        for (int list = 0; list < int(lists_.size()); ++list) {
            for (const int k : {1, 10, 12, 13, 100, 128, 129, 600}) {
                calls.push_back({list % kQueries, 1, list, k});
            }
        }
        calls.push_back({0, kQueries, 0, 10});
        calls.push_back({1, 2, 3, 100});
        calls.push_back({1, 2, 2, 300});
        return calls;
    }

    void enqueue(const Call& call, const Output& to, cudaStream_t stream)
            const {
        CertifiedCase c = shape_;
        c.q = call.count;
        c.k = call.k;
        FlatKnnProblem p = shapeOf(c);
        const List& list = lists_[call.list];
        p.vectors = onDevice_->data();
        p.queries = queriesOnDevice_->data() + call.query * shape_.d;
        if (list.allowedOf > 1) {
            p.allowedBits = list.bits->data();
            p.allowedIds = list.ids->data();
            p.numAllowed = int64_t(list.ids->size());
        }
        p.outDistances = to.distances.data();
        p.outIds = to.ids.data();
        const FlatKnnPlan plan = planOf(c, p);
        ASSERT_TRUE(plan.direct);
        ASSERT_LE(plan.bytes, scratch_->size());
        runFlatKnn(
                plan,
                p,
                {scratch_->data(), scratch_->size()},
                handle(),
                stream);
    }

    static size_t sizeOf(const Call& call) {
        return size_t(call.count) * call.k;
    }

    /// By itself, and as the oracle has it.
    KnnResult resultOf(const Call& call, cudaStream_t stream) {
        const Output output(sizeOf(call));
        enqueue(call, output, stream);
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        CertifiedCase c = shape_;
        c.q = call.count;
        c.k = call.k;
        c.allowedOf = lists_[call.list].allowedOf;
        const KnnResult result = output.download();
        const auto first = queries_.begin() + call.query * shape_.d;
        check(c,
              vectors_,
              std::vector<float>(first, first + call.count * shape_.d),
              result);
        return result;
    }

    void expectSame(size_t times, cudaStream_t stream) {
        const std::vector<Call> calls = makeCalls();
        std::vector<KnnResult> expected;
        std::vector<std::vector<std::unique_ptr<Output>>> outputs(times);
        for (const Call& call : calls) {
            expected.push_back(resultOf(call, stream));
            for (auto& some : outputs) {
                some.push_back(std::make_unique<Output>(sizeOf(call)));
            }
        }
        if (HasFailure()) {
            return;
        }
        // In other orders each time.
        constexpr size_t kSteps[] = {1, 5, 17, 29, 41};
        const auto orderOf = [&](size_t time, size_t i) {
            return (i * kSteps[time % std::size(kSteps)] + time) % calls.size();
        };
        ASSERT_EQ(calls.size(), 43u); // a prime: all come
        for (size_t time = 0; time < times; ++time) {
            for (size_t i = 0; i < calls.size(); ++i) {
                const size_t at = orderOf(time, i);
                enqueue(calls[at], *outputs[time][at], stream);
            }
        }
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        for (size_t time = 0; time < times; ++time) {
            for (size_t i = 0; i < calls.size(); ++i) {
                ASSERT_TRUE(outputs[time][i]->download() == expected[i])
                        << "time " << time << ", k = " << calls[i].k << ", one "
                        << "of " << lists_[calls[i].list].allowedOf;
            }
        }
    }

    CertifiedCase shape_;
    std::vector<float> vectors_;
    std::vector<float> queries_;
    std::unique_ptr<DeviceBuffer<float>> onDevice_;
    std::unique_ptr<DeviceBuffer<float>> queriesOnDevice_;
    std::unique_ptr<DeviceBuffer<uint8_t>> scratch_;
    std::vector<List> lists_;
};

TEST_F(DirectTogether, InTurnsWithoutAWait) {
    const TestStream stream;
    expectSame(20, stream);
}

TEST_F(DirectTogether, SmallInTurns) {
    const TestStream stream;
    expectSame(1, stream);
    expectSame(1, nullptr);
}

/// A part of the caller's graph.
TEST_F(DirectTogether, SmallCaptured) {
    const TestStream stream;
    for (const Call& call : {Call{0, 1, 2, 10}, Call{2, 1, 0, 300}}) {
        const KnnResult expected = resultOf(call, stream);
        const Output output(sizeOf(call));
        CapturedGraph graph(stream, [&] { enqueue(call, output, stream); });
        graph.launch(3);
        EXPECT_TRUE(output.download() == expected) << call.k;
    }
}

} // namespace
} // namespace faiss_bits::test
