/// Rows with their images of 16 and of 8 bits, read back.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/common/CudaCheck.h"
#include "kernels/knn/fused/ByteSearch.h"
#include "kernels/knn/fused/tensor/ByteImage.h"
#include "kernels/knn/fused/tensor/TensorImage.h"
#include "tests/common/DeviceBuffer.h"

namespace faiss_bits::test {

/// Queries that are scanned in 8 bits, or not, together.
constexpr int kTile = int(ByteSearch::kTileQueries);
constexpr int kMostKept = 512; // dimensions whose norms are integers

/// |x|^2 in two squared steps, as ByteImage::norms say it, but for its sign.
inline double unitsOf(float norm, float step) {
    if (norm != norm) {
        return -0x1p30;
    }
    return std::isinf(norm)
            ? 0x1p30
            : std::min(
                      std::nearbyint(double(norm) / (2.0 * step * step)),
                      0x1p28);
}

/// Rows with their images of 16 and of 8 bits.
struct ByteRows {
    int64_t n;
    int d;
    std::vector<float> values;
    std::vector<float> norms; // padded
    std::vector<int> bytes;   // [n, d]
    std::vector<float> steps; // one for vectors
    std::vector<float> residuals;
    float normError = 0; // of vectors
    DeviceBuffer<float> rows;
    DeviceBuffer<float> greatest;
    DeviceBuffer<float> outNorms;
    DeviceBuffer<uint32_t> costs;
    DeviceBuffer<uint8_t> memory;
    DeviceBuffer<uint8_t> byteMemory;
    TensorImage image;
    ByteImage byteImage;

    ByteRows(
            const std::vector<float>& given,
            int components,
            bool areQueries,
            const ByteRows* vectors = nullptr) // that queries meet
            : n(int64_t(given.size()) / components),
              d(components),
              values(given),
              rows(given),
              greatest(1),
              outNorms(n),
              costs(ByteImageLayout(n, d).capacity / kTile),
              memory(tensorImageBytes(n, d, areQueries), 0x7E),
              byteMemory(byteImageBytes(n, d, areQueries), 0x7E) {
        image = tensorImageAt(memory.data(), n, d, areQueries);
        byteImage = byteImageAt(byteMemory.data(), n, d, areQueries);
        const std::vector<float> zeros(d);
        const DeviceBuffer<float> center(zeros); // norms are computed with one
        TensorImageProblem problem;
        problem.rows = rows.data();
        problem.n = n;
        problem.d = d;
        problem.areQueries = areQueries;
        problem.center = center.data();
        problem.greatest = greatest.data();
        problem.vectorFacts = vectors ? vectors->image.facts : nullptr;
        problem.image = image;
        problem.outNorms = areQueries ? outNorms.data() : nullptr;
        if (!areQueries) {
            runGreatestComponent(
                    rows.data(),
                    DataType::Float32,
                    n,
                    d,
                    nullptr,
                    false,
                    greatest.data(),
                    nullptr);
        }
        runTensorImage(problem, nullptr);
        if (areQueries) {
            runByteQueries(
                    image,
                    n,
                    d,
                    vectors->byteImage.facts,
                    byteImage,
                    costs.data(),
                    nullptr);
        } else {
            runByteImage(image, n, d, greatest.data(), byteImage, nullptr);
        }
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        readBack(areQueries);
    }

   private:
    template <class T>
    static std::vector<T> read(const void* from, size_t count) {
        std::vector<T> out(count);
        BITS_CUDA_CHECK(cudaMemcpy(
                out.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost));
        return out;
    }

    void readBack(bool areQueries) {
        const ByteImageLayout layout(n, d);
        const auto pieces = read<int8_t>(byteImage.pieces, layout.pieceBytes());
        bytes.resize(size_t(n) * d);
        for (int64_t i = 0; i < layout.capacity; ++i) {
            for (int c = 0; c < layout.slabs * 128; ++c) {
                const int64_t row = i % 128;
                const int64_t at = i / 128 * layout.slabs * 16384 +
                        c / 128 * 16384 + row * 128 +
                        ((c % 128 / 16) ^ (row % 8)) * 16 + c % 16;
                if (i < n && c < d) {
                    bytes[size_t(i) * d + c] = pieces[at];
                } else {
                    ASSERT_EQ(pieces[at], 0)
                            << "row " << i << " component " << c;
                }
            }
        }
        if (areQueries) {
            steps = read<float>(byteImage.steps, n);
            residuals = read<float>(byteImage.residuals, n);
            norms = outNorms.download();
            for (uint32_t cost : costs.download()) {
                ASSERT_EQ(cost, 0u);
            }
        } else {
            const auto facts = read<TensorImageFacts>(byteImage.facts, 1)[0];
            steps = {facts.inverse};
            residuals = {facts.residual};
            normError = facts.normError;
            norms = read<float>(image.norms, layout.capacity);
            ASSERT_EQ(byteImage.norms != nullptr, d <= kMostKept);
            if (byteImage.norms) {
                const auto units =
                        read<int32_t>(byteImage.norms, layout.capacity);
                for (int64_t i = 0; i < layout.capacity; ++i) {
                    ASSERT_EQ(-units[i], unitsOf(norms[i], steps[0])) << i;
                }
            }
        }
    }
};

} // namespace faiss_bits::test
