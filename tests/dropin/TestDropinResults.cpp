// FAISS 1.7.3 uses its types without it, which GCC 13 refuses.
#include <cstdint>
#include <memory>
#include <random>
#include <thread>

#include <faiss/gpu/GpuIndexFlat.h>
#include <faiss/gpu/GpuIndexIVFFlat.h>

#include "tests/flat/PagingHarness.h"

/// Results of FAISS's own GPU indexes on their way to the host, in a program
/// that is linked with the drop-in library first.
namespace faiss_bits::test {
namespace {

using faiss::gpu::GpuIndexFlatL2;
using faiss::gpu::GpuIndexIVFFlat;

constexpr int kDims = 4;
constexpr float kUntouched = -77;

/// Small integers: every distance is exact in float32.
std::vector<float> integers(size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<float> values(count);
    for (float& value : values) {
        value = float(random() % 16);
    }
    return values;
}

/// An index, and what it should find, by float64.
class Searched {
   public:
    explicit Searched(int64_t n, uint32_t seed = 1)
            : n_(n), vectors_(integers(size_t(n) * kDims, seed)) {}

    std::unique_ptr<GpuIndexFlatL2> index(
            faiss::gpu::GpuResourcesProvider* resources = sharedResources(),
            int device = 0) const {
        faiss::gpu::GpuIndexFlatConfig config;
        config.device = device;
        auto index = std::make_unique<GpuIndexFlatL2>(resources, kDims, config);
        index->add(n_, vectors_.data());
        return index;
    }

    double distance(const float* query, int64_t id) const {
        double sum = 0;
        for (int c = 0; c < kDims; ++c) {
            const double difference =
                    double(query[c]) - double(vectors_[id * kDims + c]);
            sum += difference * difference;
        }
        return sum;
    }

    /// Every row is the k best distances, each that of its id, and no id comes
    /// twice; places beyond the vectors are empty.
    void expectRows(
            const std::vector<float>& queries,
            int64_t k,
            const float* distances,
            const int64_t* labels) const {
        const int64_t q = int64_t(queries.size()) / kDims;
        const int64_t filled = std::min(k, n_);
        std::vector<double> all(static_cast<size_t>(n_));
        for (int64_t row = 0; row < q; ++row) {
            const float* query = queries.data() + row * kDims;
            for (int64_t id = 0; id < n_; ++id) {
                all[id] = distance(query, id);
            }
            std::partial_sort(all.begin(), all.begin() + filled, all.end());
            std::vector<int64_t> ids(
                    labels + row * k, labels + row * k + filled);
            for (int64_t place = 0; place < filled; ++place) {
                const float found = distances[row * k + place];
                const int64_t id = ids[place];
                ASSERT_TRUE(id >= 0 && id < n_)
                        << "row " << row << " place " << place << " id " << id;
                ASSERT_EQ(double(found), all[place])
                        << "row " << row << " place " << place;
                ASSERT_EQ(distance(query, id), all[place])
                        << "row " << row << " place " << place;
            }
            std::sort(ids.begin(), ids.end());
            ASSERT_EQ(std::unique(ids.begin(), ids.end()), ids.end())
                    << "row " << row;
            for (int64_t place = filled; place < k; ++place) {
                ASSERT_EQ(labels[row * k + place], -1)
                        << "row " << row << " place " << place;
            }
        }
    }

   private:
    int64_t n_;
    std::vector<float> vectors_;
};

/// Outputs on the host with something before and behind them, which is none of
/// a search's business, and no alignment but that of their type.
template <class T>
class Guarded {
   public:
    explicit Guarded(size_t count) : values_(count + 2, T(kUntouched)) {}

    T* data() {
        return values_.data() + 1;
    }
    bool isUntouchedAround() const {
        return values_.front() == T(kUntouched) &&
                values_.back() == T(kUntouched);
    }
    bool isUntouched() const {
        return std::all_of(values_.begin(), values_.end(), [](T value) {
            return value == T(kUntouched);
        });
    }

   private:
    std::vector<T> values_;
};

void expectSearch(
        const Searched& searched,
        const faiss::Index& index,
        int64_t q,
        int64_t k) {
    SCOPED_TRACE(testing::Message() << "q=" << q << " k=" << k);
    const auto queries = integers(size_t(q) * kDims, uint32_t(q + k));
    Guarded<float> distances{size_t(q * k)};
    Guarded<int64_t> labels{size_t(q * k)};
    index.search(q, queries.data(), k, distances.data(), labels.data());
    EXPECT_TRUE(distances.isUntouchedAround());
    EXPECT_TRUE(labels.isUntouchedAround());
    searched.expectRows(queries, k, distances.data(), labels.data());
}

class DropinResults : public GpuTest {};

// Places at which the way home changes: one copy or pieces (64 KiB), the end of
// a piece of either array (256 KiB), one more thread (512 KiB each), all of
// them.
TEST_F(DropinResults, SmallBothSidesOfEveryEdge) {
    const Searched searched(50);
    const auto index = searched.index();
    for (int64_t q :
         {1,
          5461,
          5462,
          32768,
          32769,
          43690,
          43691,
          65536,
          65537,
          87381,
          87382,
          131073,
          349526,
          700001}) {
        expectSearch(searched, *index, q, 1);
        if (HasFatalFailure()) {
            return;
        }
    }
}

TEST_F(DropinResults, LongRows) {
    const Searched searched(3000);
    const auto index = searched.index();
    for (int64_t k : {2, 7, 100, 1000, 2047}) {
        for (int64_t q : {1, 3, 43, 700}) {
            expectSearch(searched, *index, q, k);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_F(DropinResults, FewerVectorsThanPlaces) {
    const Searched searched(20);
    const auto index = searched.index();
    for (int64_t q : {1, 90, 9000}) {
        expectSearch(searched, *index, q, 70);
    }
}

// FAISS's exceptions pass, while other threads wait for results.
TEST_F(DropinResults, ErrorsLeaveResultsAlone) {
    const int64_t q = 5000;
    const auto queries = integers(q * kDims, 3);
    const GpuIndexIVFFlat untrained(
            sharedResources(), kDims, 16, faiss::METRIC_L2);
    for (int64_t k : {1, 10, 300}) {
        Guarded<float> distances{size_t(q * k)};
        Guarded<int64_t> labels{size_t(q * k)};
        EXPECT_THROW(
                untrained.search(
                        q, queries.data(), k, distances.data(), labels.data()),
                faiss::FaissException);
        EXPECT_TRUE(distances.isUntouched());
        EXPECT_TRUE(labels.isUntouched());
    }
    const Searched searched(50);
    const auto index = searched.index();
    Guarded<float> distances{1};
    Guarded<int64_t> labels{1};
    EXPECT_THROW(
            index->search(
                    1, queries.data(), 5000, distances.data(), labels.data()),
            faiss::FaissException);
    index->search(0, queries.data(), 1, distances.data(), labels.data());
    EXPECT_TRUE(distances.isUntouched());
    EXPECT_TRUE(labels.isUntouched());
}

TEST_F(DropinResults, OtherMemory) {
    const Searched searched(400);
    const auto index = searched.index();
    for (HostKind distanceKind : kHostKinds) {
        for (HostKind labelKind : kHostKinds) {
            for (int64_t q : {2, 3000}) {
                const int64_t k = 33;
                const auto queries = integers(q * kDims, 9);
                const HostArray<float> distances(distanceKind, q * k);
                const HostArray<int64_t> labels(labelKind, q * k);
                index->search(
                        q, queries.data(), k, distances.data(), labels.data());
                BITS_CUDA_CHECK(cudaDeviceSynchronize());
                searched.expectRows(
                        queries, k, distances.data(), labels.data());
            }
        }
    }
}

TEST_F(DropinResults, QueriesInPages) {
    const Searched searched(300);
    const auto index = searched.index();
    index->setMinPagingSize(1 << 12);
    for (int64_t q : {200, 4000, 90000}) {
        expectSearch(searched, *index, q, 5);
    }
}

TEST_F(DropinResults, StreamsOfTheUser) {
    const Searched searched(300);
    TestStream stream;
    OwnResources resources;
    resources.setDefaultStream(0, stream);
    expectSearch(searched, *searched.index(&resources), 9000, 20);
    resources.setDefaultNullStreamAllDevices();
    expectSearch(searched, *searched.index(&resources), 9000, 20);
}

// Each with resources of its own, as FAISS demands; pinned memory and streams
// of earlier calls go from one to another.
TEST_F(DropinResults, SeveralThreads) {
    const Searched searched(200);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&searched, t] {
            OwnResources resources;
            const auto index = searched.index(&resources);
            for (int i = 0; i < 6; ++i) {
                expectSearch(
                        searched, *index, 1 + 4000 * ((t + i) % 4), 11 + t);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

TEST_F(DropinResults, AnotherDeviceThanTheThreads) {
    int devices = 0;
    BITS_CUDA_CHECK(cudaGetDeviceCount(&devices));
    const Searched searched(200);
    OwnResources resources;
    for (int device = devices - 1; device >= 0; --device) {
        const auto index = searched.index(&resources, device);
        for (int current = 0; current < devices; ++current) {
            BITS_CUDA_CHECK(cudaSetDevice(current));
            for (int64_t q : {3, 40000}) {
                expectSearch(searched, *index, q, 6);
            }
            int now = -1;
            BITS_CUDA_CHECK(cudaGetDevice(&now));
            EXPECT_EQ(now, current);
        }
    }
    BITS_CUDA_CHECK(cudaSetDevice(0));
}

} // namespace
} // namespace faiss_bits::test
