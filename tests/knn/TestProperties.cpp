/// Random searches of every kind, each place of each query against the oracle.
///
/// FAISS_BITS_PROPERTY_QUERIES   queries to check; default 5,000
/// FAISS_BITS_PROPERTY_SEED      default 1
/// FAISS_BITS_PROPERTY_SECONDS   no search starts later; default: no limit
/// FAISS_BITS_PROPERTY_THREADS   of the reference; default: one a core
///
/// benchs/run_properties.py runs many of them.

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "kernels/knn/direct/DirectSpread.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

int64_t numberFromEnv(const char* name, int64_t otherwise) {
    const char* value = std::getenv(name);
    return value ? std::atoll(value) : otherwise;
}

class FlatKnnProperties : public FlatKnnCertified {
   protected:
    /// Small most of the time, up to `most`.
    int64_t upTo(int64_t most) {
        const double power =
                std::uniform_real_distribution<double>(0, 1)(random_);
        return std::clamp<int64_t>(
                int64_t(std::pow(double(most), power)), 1, most);
    }

    template <class T>
    T oneOf(const std::vector<T>& values) {
        return values[random_() % values.size()];
    }

    /// Few vectors that are met at once by one kernel, where it has them.
    void drawFew(CertifiedCase& c) {
        c.metric = Metric::L2;
        c.dataType = DataType::Float32;
        c.exactQueries = false;
        c.allowedOf = 0;
        // Many queries are finished by eight lanes each.
        const bool areMany = random_() % 4 == 0;
        c.q = areMany ? 8192 + upTo(2000) : 17 + upTo(2000);
        const bool areFewest = areMany || random_() % 2;
        c.n = 200 + int64_t(random_() % (areFewest ? 900 : 3900));
        c.d = 33 + int(random_() % 96);
        c.k = 1 + int(random_() % (random_() % 2 ? 8 : 64));
        c.maxScratch = kRoomyScratch;
        c.direct = CertifiedCase::Direct::AtOnce;
        if (!planOf(c).fused) {
            c.direct = CertifiedCase::Direct::WhereItPays;
        }
    }

    CertifiedCase draw() {
        CertifiedCase c;
        c.metric = oneOf<Metric>(
                {Metric::L2,
                 Metric::L2,
                 Metric::InnerProduct,
                 Metric::InnerProduct,
                 Metric::L1,
                 Metric::Linf,
                 Metric::Lp,
                 Metric::Cosine,
                 Metric::Canberra,
                 Metric::BrayCurtis,
                 Metric::JensenShannon,
                 Metric::Jaccard});
        c.p = oneOf<float>({0.5f, 1.f, 1.5f, 2.f, 3.f, 4.f, 2.7f});
        c.dataType = oneOf<DataType>(
                {DataType::Float32,
                 DataType::Float32,
                 DataType::Float16,
                 DataType::BFloat16});
        c.exactQueries = c.dataType != DataType::Float32 &&
                c.metric != Metric::Cosine && random_() % 2;
        // On both sides of where searches have no matrix of distances.
        c.n = random_() % 4 == 0 ? 8000 + upTo(30000) : upTo(3000);
        c.q = upTo(c.n > 8000 ? 1500 : 600);
        c.d = int(upTo(70));
        c.k =
                int(random_() % 8 == 0 ? upTo(c.n + 5)
                                       : upTo(std::min<int64_t>(c.n + 5, 60)));
        if (random_() % 4 == 0) {
            c.allowedOf = int(upTo(random_() % 2 ? 5 : 300));
            c.holes = int(random_() % 4) - 1;
        }
        if (random_() % 8 == 0) {
            // The one nearest of few vectors.
            c.k = 1;
            c.allowedOf = 0;
            c.n = 64 + upTo(6000);
            c.d = int(upTo(300));
            c.q = std::clamp<int64_t>(
                    (int64_t(1) << 26) / (c.n * c.d) + upTo(500), 17, 20000);
        }
        c.keptImage = random_() % 2;
        c.imageInOrder = random_() % 2;
        c.direct = random_() % 2 ? CertifiedCase::Direct::WhereItPays
                                 : CertifiedCase::Direct::Never;
        c.idType = random_() % 2 ? IdType::Int64 : IdType::Int32;
        c.maxScratch = random_() % 4 == 0 ? size_t(2) << 20 : kRoomyScratch;
        if (random_() % 12 == 0) {
            drawFew(c);
        }
        if (random_() % 24 == 0) {
            // Cosines that are 1, 0 or -1.
            c.metric = Metric::Cosine;
            c.exactQueries = false;
            c.d = 1;
            c.n = upTo(30000);
            c.k = int(upTo(c.n + 5));
            c.q = upTo(300);
            c.direct = CertifiedCase::Direct::WhereItPays;
        }
        if (random_() % 32 == 0) {
            // So large a k that several blocks find the results.
            c.metric = oneOf(kDirectMetrics);
            c.allowedOf = random_() % 4 == 0 ? int(upTo(3)) : 0;
            c.k = 513 + int(random_() % 1536);
            c.n = idx_t(kLeastSpreadGroups) * kDirectUnit * c.k + upTo(20000);
            c.d = int(upTo(8));
            c.q = 1 + random_() % 4;
            c.direct = CertifiedCase::Direct::Always;
            c.maxScratch = kRoomyScratch;
        }
        return c;
    }

    /// Every query, by all cores. Returns what is wrong with the first that is,
    /// and how many are.
    std::string compare(
            const CertifiedCase& c,
            const std::vector<float>& vectors,
            const std::vector<float>& queries,
            const KnnResult& result) {
        std::vector<float> seen = vectors;
        for (int64_t i = 0; c.allowedOf > 0 && i < c.n; ++i) {
            if (i % c.allowedOf != 0) {
                std::fill_n(seen.begin() + i * c.d, c.d, std::nanf(""));
            }
        }
        std::atomic<int64_t> next = 0;
        std::mutex mutex;
        std::map<int64_t, std::string> failures;
        const auto work = [&] {
            for (int64_t row; (row = next++) < c.q;) {
                const auto same = isCanonical(
                        canonicalTopK(
                                c.metric,
                                c.p,
                                queries.data() + row * c.d,
                                seen.data(),
                                c.n,
                                c.d,
                                c.k),
                        isSimilarity(c.metric),
                        result.distances.data() + row * c.k,
                        result.ids.data() + row * c.k,
                        c.k);
                if (!same) {
                    const std::lock_guard<std::mutex> lock(mutex);
                    failures[row] = same.message();
                }
            }
        };
        std::vector<std::thread> threads;
        const int64_t numThreads = numberFromEnv(
                "FAISS_BITS_PROPERTY_THREADS",
                std::thread::hardware_concurrency());
        for (int64_t t = 0; t < std::max<int64_t>(numThreads, 1); ++t) {
            threads.emplace_back(work);
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        if (failures.empty()) {
            return "";
        }
        return "query " + std::to_string(failures.begin()->first) + ": " +
                failures.begin()->second + ", " +
                std::to_string(failures.size()) + " queries are wrong";
    }

    std::mt19937_64 random_;
};

TEST_F(FlatKnnProperties, EveryPlaceOfEveryQuery) {
    const int64_t wanted = numberFromEnv("FAISS_BITS_PROPERTY_QUERIES", 5000);
    const int64_t seed = numberFromEnv("FAISS_BITS_PROPERTY_SEED", 1);
    const int64_t seconds =
            numberFromEnv("FAISS_BITS_PROPERTY_SECONDS", 1000000000);
    const auto end =
            std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    random_.seed(seed);
    int64_t queriesChecked = 0;
    int64_t searches = 0;
    unsigned long long repeated = 0;
    while (queriesChecked < wanted && std::chrono::steady_clock::now() < end) {
        const CertifiedCase c = draw();
        const Hard kind = oneOf(kHard);
        std::vector<float> vectors =
                makeHard(kind, c.n, c.d, uint32_t(random_()));
        std::vector<float> queries =
                makeHard(kind, c.q, c.d, uint32_t(random_()));
        roundAllTo(c.dataType, vectors);
        if (!c.exactQueries) {
            roundAllTo(c.dataType, queries);
        }
        const Result result = search(c, vectors, queries);
        const std::string failure = compare(c, vectors, queries, result);
        ASSERT_EQ(failure, "")
                << c.describe() << " data " << int(kind) << " seed " << seed
                << ", " << result.repeated << " repeated";
        queriesChecked += c.q;
        repeated += result.repeated;
        ++searches;
    }
    std::printf(
            "%lld queries in %lld searches, seed %lld: all places right, %llu "
            "repeated\n",
            (long long)queriesChecked,
            (long long)searches,
            (long long)seed,
            repeated);
}

} // namespace
} // namespace faiss_bits::test
