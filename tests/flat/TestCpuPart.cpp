/// The part of faiss_bits that needs no CUDA.

#include <string>

#include <faiss/impl/FaissException.h>
#include <gtest/gtest.h>

#include "faiss_bits/Version.h"
#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/flat/BestFlatIndex.h"
#include "faiss_bits/flat/IndexFusedFlat.h"

namespace faiss_bits {
namespace {

TEST(BestFlatIndex, FindsTheNearest) {
    const float vectors[] = {0, 0, 3, 4, 1, 1};
    const float query[] = {1, 2};
    float distances[3];
    idx_t labels[3];

    auto l2 = bestFlatIndex(2, faiss::METRIC_L2);
    EXPECT_EQ(l2->metric_type, faiss::METRIC_L2);
    l2->add(3, vectors);
    l2->search(1, query, 3, distances, labels);
    EXPECT_EQ(labels[0], 2);
    EXPECT_FLOAT_EQ(distances[0], 1);
    EXPECT_EQ(labels[1], 0);
    EXPECT_FLOAT_EQ(distances[1], 5);
    EXPECT_EQ(labels[2], 1);
    EXPECT_FLOAT_EQ(distances[2], 8);

    auto ip = bestFlatIndex(2, faiss::METRIC_INNER_PRODUCT);
    EXPECT_EQ(ip->metric_type, faiss::METRIC_INNER_PRODUCT);
    ip->add(3, vectors);
    ip->search(1, query, 2, distances, labels);
    EXPECT_EQ(labels[0], 1);
    EXPECT_FLOAT_EQ(distances[0], 11);
    EXPECT_EQ(labels[1], 2);
    EXPECT_FLOAT_EQ(distances[1], 3);
}

TEST(BestFlatIndex, IsOurs) {
    for (auto metric :
         {faiss::METRIC_L2,
          faiss::METRIC_INNER_PRODUCT,
          faiss::METRIC_L1,
          faiss::METRIC_Linf,
          faiss::METRIC_Lp}) {
        const auto index = bestFlatIndex(7, metric);
        EXPECT_NE(dynamic_cast<IndexFusedFlat*>(index.get()), nullptr);
        EXPECT_EQ(index->d, 7);
        EXPECT_EQ(index->metric_type, metric);
        EXPECT_EQ(index->ntotal, 0);
    }
}

void expectThrows(int d, faiss::MetricType metric, const std::string& text) {
    try {
        bestFlatIndex(d, metric);
        ADD_FAILURE() << "nothing was thrown for " << text;
    } catch (const faiss::FaissException& error) {
        EXPECT_NE(std::string(error.what()).find(text), std::string::npos)
                << error.what();
    }
}

TEST(BestFlatIndex, NamesBadArguments) {
    expectThrows(0, faiss::METRIC_L2, "d = 0");
    expectThrows(-3, faiss::METRIC_L2, "d = -3");
    expectThrows(4, faiss::MetricType(99), "metric = 99");
}

TEST(Version, LibraryAndHeadersAgree) {
    const std::string headers = std::to_string(FAISS_BITS_VERSION_MAJOR) + "." +
            std::to_string(FAISS_BITS_VERSION_MINOR) + "." +
            std::to_string(FAISS_BITS_VERSION_PATCH);
    EXPECT_EQ(version(), headers);
}

} // namespace
} // namespace faiss_bits
