#pragma once

#include <cstring>

#include "tests/dropin/DropinListsHarness.h"

/// Calls FAISS's scans of lists of codes of 8 bits, as the drop-in library
/// defines them, with both kinds of lengths, and holds the result against the
/// canonical one of the decoded vectors. What is left to FAISS throws, as there
/// is none.
namespace faiss_bits::test {

enum class Codes { OfComponents, Uniform, Direct, Product };

struct CodedCase {
    Codes codes = Codes::OfComponents;
    bool isL2 = true;
    bool interleaved = true;
    bool residual = true; ///< always so of product codes
    size_t version = 0;   ///< of faiss::gpu::kScalarRangesAt
    int64_t n = 2000;
    int numLists = 20;
    int64_t q = 3;
    int d = 24;
    int parts = 6; ///< Product
    int nprobe = 5;
    int k = 10;

    bool isProduct() const {
        return codes == Codes::Product;
    }
    bool hasBases() const {
        return residual || isProduct();
    }
    std::string describe() const {
        std::ostringstream text;
        text << "codes=" << int(codes) << (isL2 ? " L2" : " IP")
             << (interleaved ? " interleaved" : " rows")
             << (hasBases() ? " residual" : "") << " n=" << n
             << " lists=" << numLists << " q=" << q << " d=" << d
             << " nprobe=" << nprobe << " k=" << k;
        return text.str();
    }
};

/// What of a call is not as in a FAISS that we know, or as we have kernels for.
enum class Wrong {
    Nothing,
    Dimensions,  ///< of the quantizer
    Bits,        ///< of its codes
    CodeSize,    ///< of its vectors
    Trained,     ///< ranges on the host
    Ranges,      ///< ranges on the device
    Memory,      ///< of those
    Type,        ///< one that has no kernels
    Bases,       ///< for fewer probes
    Codebook,    ///< of other dimensions
    Centroids,   ///< of fewer lists
    BitsOfCodes, ///< of product codes
};

template <class Index>
class CodedLists {
   public:
    static constexpr int kOutputByte = 0xA5;
    static constexpr int kGroup = 32;
    static constexpr int kCodes = 256;

    explicit CodedLists(const CodedCase& c)
            : case_(c),
              codesOf_(c.isProduct() ? c.parts : c.d),
              queries_(makeHard(Hard::Offset, c.q, c.d, 2)),
              lists_(c.numLists),
              deviceQueries_(queries_),
              outDistances_(c.q * c.k, kOutputByte),
              outIds_(c.q * c.k, kOutputByte) {
        std::mt19937_64 random(7);
        std::uniform_real_distribution<float> uniform(-1, 1);
        for (int64_t i = 0; i < c.n; ++i) {
            const size_t list =
                    random() % 16 ? random() % size_t(c.numLists) : 0;
            lists_[list % 3 == 2 ? list - 1 : list].push_back(i);
        }
        codes_.resize(size_t(c.n) * codesOf_);
        for (uint8_t& code : codes_) {
            code = uint8_t(random() % kCodes);
        }
        const auto fill = [&](std::vector<float>& values, size_t count) {
            values.resize(count);
            for (float& value : values) {
                value = uniform(random);
            }
        };
        fill(trained_, c.codes == Codes::Uniform ? 2 : 2 * size_t(c.d));
        fill(codebook_, size_t(c.d) * kCodes);
        fill(centroids_, size_t(c.numLists) * c.d);
        makeProbes(random);
        upload();
    }

    /// Waits only as far as the function does. Throws what is left to FAISS.
    void call(Wrong wrong = Wrong::Nothing) {
        const CodedCase& c = case_;
        auto data = arrayOf<void*>(codePointers_);
        auto ids = arrayOf<void*>(codePointers_);
        auto lengths = arrayOf<Index>(lengths_);
        auto queries = matrixOf(deviceQueries_.data(), c.q, c.d);
        auto probes = matrixOf(deviceProbes_.data(), c.q, c.nprobe);
        auto distances = matrixOf(outDistances_.data(), c.q, c.k);
        auto outIds = matrixOf(outIds_.data(), c.q, c.k);
        const auto metric =
                c.isL2 ? faiss::METRIC_L2 : faiss::METRIC_INNER_PRODUCT;
        if (c.isProduct()) {
            auto centroids = matrixOf(
                    deviceCentroids_.data(),
                    c.numLists - (wrong == Wrong::Centroids),
                    c.d);
            auto codebook =
                    cubeOf(deviceCodebook_.data(),
                           c.parts,
                           c.d / c.parts + (wrong == Wrong::Codebook),
                           kCodes);
            // Nothing of it is to be read.
            auto listDistances = matrixOf<float>(nullptr, c.q, c.nprobe);
            const int bits = wrong == Wrong::BitsOfCodes ? 7 : 8;
            faiss::gpu::runPQScanMultiPassNoPrecomputed<float>(
                    queries,
                    centroids,
                    codebook,
                    listDistances,
                    probes,
                    false,
                    false,
                    c.interleaved,
                    bits,
                    c.parts,
                    kCodes,
                    data,
                    ids,
                    faiss::gpu::INDICES_IVF,
                    lengths,
                    Index(lists_[0].size()),
                    c.k,
                    metric,
                    distances,
                    outIds,
                    &resources_);
            return;
        }
        const auto quantizer = quantizerOf(wrong);
        auto* scalarQ = reinterpret_cast<faiss::gpu::GpuScalarQuantizer*>(
                const_cast<unsigned char*>(quantizer.data()));
        auto bases =
                cubeOf(deviceBases_.data(),
                       c.q,
                       c.nprobe - (wrong == Wrong::Bases),
                       c.d);
        if (c.interleaved) {
            faiss::gpu::runIVFInterleavedScan(
                    queries,
                    probes,
                    data,
                    ids,
                    faiss::gpu::INDICES_IVF,
                    lengths,
                    c.k,
                    metric,
                    c.residual,
                    bases,
                    scalarQ,
                    distances,
                    outIds,
                    &resources_);
        } else {
            faiss::gpu::runIVFFlatScan(
                    queries,
                    probes,
                    data,
                    ids,
                    faiss::gpu::INDICES_IVF,
                    lengths,
                    Index(lists_[0].size()),
                    c.k,
                    metric,
                    c.residual,
                    bases,
                    scalarQ,
                    distances,
                    outIds,
                    &resources_);
        }
    }

    ::testing::AssertionResult check() {
        const CodedCase& c = case_;
        const auto distances = outDistances_.download();
        const auto ids = outIds_.download();
        for (int64_t row = 0; row < c.q; row += 1 + c.q / 12) {
            auto result = isCanonical(
                    wanted(row),
                    !c.isL2,
                    distances.data() + row * c.k,
                    ids.data() + row * c.k,
                    c.k);
            if (!result) {
                return result << "\n  query " << row << " of " << c.describe();
            }
        }
        return ::testing::AssertionSuccess();
    }

    /// Whether nothing was written.
    bool isUntouched() {
        const auto ids = outIds_.download();
        return std::all_of(ids.begin(), ids.end(), [](int64_t id) {
            return uint64_t(id) == 0xA5A5A5A5A5A5A5A5;
        });
    }

   private:
    template <class T>
    static faiss::gpu::Matrix<T, Index> matrixOf(
            T* data,
            int64_t rows,
            int64_t cols) {
        return {data, {Index(cols), 1}, {Index(rows), Index(cols)}};
    }

    static faiss::gpu::Cube<float, Index> cubeOf(
            float* data,
            int64_t a,
            int64_t b,
            int64_t c) {
        return {data,
                {Index(b * c), Index(c), 1},
                {Index(a), Index(b), Index(c)}};
    }

    template <class T>
    faiss::gpu::DeviceVector<T> arrayOf(DeviceBuffer<T>& buffer) {
        faiss::gpu::DeviceVector<T> array = {};
        array.alloc_ = {
                &resources_,
                0,
                nullptr,
                buffer.data(),
                buffer.size() * sizeof(T)};
        array.num_ = size_t(case_.numLists);
        array.capacity_ = buffer.size();
        array.res_ = &resources_;
        return array;
    }

    /// In memory, as FAISS has it.
    std::vector<unsigned char> quantizerOf(Wrong wrong) {
        using namespace faiss::gpu;
        const CodedCase& c = case_;
        ScalarQuantizerMemory q = {};
        ScalarRangesMemory<Index> ranges = {};
        q.d_ = size_t(c.d) + (wrong == Wrong::Dimensions);
        q.codeSize_ = size_t(c.d) + (wrong == Wrong::CodeSize);
        q.type_ = wrong == Wrong::Type      ? 7
                : c.codes == Codes::Direct  ? SCALAR_8BIT_DIRECT
                : c.codes == Codes::Uniform ? SCALAR_8BIT_UNIFORM
                                            : SCALAR_8BIT;
        q.bits_ = wrong == Wrong::Bits ? 6 : 8;
        if (c.codes != Codes::Direct) {
            q.trainedBegin_ = trained_.data();
            q.trainedEnd_ = trained_.data() + trained_.size() -
                    (wrong == Wrong::Trained);
            q.trainedCapacity_ = trained_.data() + trained_.size();
            ranges.gpuTrained_ = {
                    deviceTrained_.data(),
                    {1},
                    {Index(trained_.size() - (wrong == Wrong::Ranges))}};
            ranges.gpuTrainedMemory_ = {
                    wrong == Wrong::Memory ? nullptr : &resources_,
                    0,
                    nullptr,
                    deviceTrained_.data(),
                    trained_.size() * sizeof(float)};
        }
        const size_t at = kScalarRangesAt[c.version];
        // With room for what a look at the wrong place reads.
        std::vector<unsigned char> memory(
                kScalarRangesAt[2] + sizeof(ranges), 0xA5);
        std::memcpy(memory.data(), &q, sizeof(q));
        std::memcpy(memory.data() + at, &ranges, sizeof(ranges));
        return memory;
    }

    /// Different lists in any order, and some that there are not.
    void makeProbes(std::mt19937_64& random) {
        const CodedCase& c = case_;
        std::vector<int64_t> order(size_t(c.numLists));
        std::iota(order.begin(), order.end(), 0);
        for (int64_t i = 0; i < c.q; ++i) {
            std::shuffle(order.begin(), order.end(), random);
            for (int p = 0; p < c.nprobe; ++p) {
                const bool isNone = random() % 9 == 0;
                probes_.push_back(isNone ? -1 : order[size_t(p)]);
            }
        }
    }

    void upload() {
        const CodedCase& c = case_;
        std::vector<void*> pointers;
        std::vector<Index> lengths;
        for (const auto& list : lists_) {
            const size_t padded = (list.size() + kGroup - 1) / kGroup * kGroup;
            std::vector<uint8_t> bytes(padded * codesOf_, 0xEE);
            for (size_t i = 0; i < list.size(); ++i) {
                for (size_t j = 0; j < codesOf_; ++j) {
                    const size_t place = c.interleaved
                            ? (i / kGroup * codesOf_ + j) * kGroup + i % kGroup
                            : i * codesOf_ + j;
                    bytes[place] = codes_[size_t(list[i]) * codesOf_ + j];
                }
            }
            codeBuffers_.emplace_back(bytes);
            pointers.push_back(
                    list.empty() ? nullptr : codeBuffers_.back().data());
            lengths.push_back(Index(list.size()));
        }
        codePointers_ = DeviceBuffer<void*>(pointers);
        lengths_ = DeviceBuffer<Index>(lengths);
        deviceProbes_ = DeviceBuffer<int64_t>(probes_);
        deviceTrained_ = DeviceBuffer<float>(trained_);
        deviceCentroids_ = DeviceBuffer<float>(centroids_);
        uploadCodebook();
        uploadBases();
    }

    /// Codes innermost, as FAISS's scan is given it.
    void uploadCodebook() {
        const CodedCase& c = case_;
        const int dims = c.isProduct() ? c.d / c.parts : c.d;
        std::vector<float> innermost(codebook_.size());
        for (size_t i = 0; i < codebook_.size(); ++i) {
            const size_t component = i % dims;
            const size_t code = i / dims % kCodes;
            const size_t part = i / dims / kCodes;
            innermost[(part * dims + component) * kCodes + code] = codebook_[i];
        }
        deviceCodebook_ = DeviceBuffer<float>(innermost);
    }

    /// NaN where there is no list, as FAISS has it.
    void uploadBases() {
        const CodedCase& c = case_;
        std::vector<float> bases;
        for (int64_t list : probes_) {
            for (int j = 0; j < c.d; ++j) {
                bases.push_back(
                        list < 0 ? std::nanf("")
                                 : centroids_[size_t(list) * c.d + j]);
            }
        }
        deviceBases_ = DeviceBuffer<float>(bases);
    }

    /// A component of a vector, each operation rounded.
    float decoded(int64_t vector, int j) const {
        const CodedCase& c = case_;
        if (c.isProduct()) {
            const int dims = c.d / c.parts;
            const int part = j / dims;
            const size_t code = codes_[size_t(vector * c.parts + part)];
            return codebook_[(part * kCodes + code) * dims + j % dims];
        }
        const float code = codes_[size_t(vector * c.d + j)];
        if (c.codes == Codes::Direct) {
            return code;
        }
        const bool isUniform = c.codes == Codes::Uniform;
        const float least = trained_[isUniform ? 0 : size_t(j)];
        const float range = trained_[isUniform ? 1 : size_t(c.d + j)];
        const float inverse = 1.0f / 255.0f;
        const float step = range * inverse;
        return std::fma(code, step, std::fma(0.5f, step, least));
    }

    std::vector<Ranked> wanted(int64_t row) const {
        const CodedCase& c = case_;
        std::vector<float> x(size_t(c.d));
        std::vector<Ranked> candidates;
        for (int p = 0; p < c.nprobe; ++p) {
            const int64_t list = probes_[size_t(row * c.nprobe + p)];
            if (list < 0) {
                continue;
            }
            const auto& members = lists_[size_t(list)];
            for (size_t i = 0; i < members.size(); ++i) {
                for (int j = 0; j < c.d; ++j) {
                    x[size_t(j)] = decoded(members[i], j);
                    if (c.hasBases()) {
                        x[size_t(j)] += centroids_[size_t(list) * c.d + j];
                    }
                }
                candidates.push_back(
                        {canonicalDistance(
                                 c.isL2 ? Metric::L2 : Metric::InnerProduct,
                                 0,
                                 queries_.data() + row * c.d,
                                 x.data(),
                                 c.d),
                         list << 32 | int64_t(i)});
            }
        }
        return topK(candidates, c.k, !c.isL2);
    }

    CodedCase case_;
    size_t codesOf_; // a vector
    std::vector<float> queries_;
    std::vector<std::vector<int64_t>> lists_;
    std::vector<uint8_t> codes_;   // [n, codesOf_]
    std::vector<float> trained_;   // least, then range
    std::vector<float> codebook_;  // [parts, codes, components]
    std::vector<float> centroids_; // [numLists, d]
    std::vector<int64_t> probes_;  // [q, nprobe]
    faiss::gpu::GpuResources resources_;
    std::vector<DeviceBuffer<uint8_t>> codeBuffers_;
    DeviceBuffer<void*> codePointers_;
    DeviceBuffer<Index> lengths_;
    DeviceBuffer<int64_t> deviceProbes_;
    DeviceBuffer<float> deviceTrained_;
    DeviceBuffer<float> deviceCentroids_;
    DeviceBuffer<float> deviceCodebook_;
    DeviceBuffer<float> deviceBases_;
    DeviceBuffer<float> deviceQueries_;
    DeviceBuffer<float> outDistances_;
    DeviceBuffer<int64_t> outIds_;
};

} // namespace faiss_bits::test
