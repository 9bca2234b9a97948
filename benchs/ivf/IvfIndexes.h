#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <faiss/IndexIVF.h>
#include <faiss/gpu/GpuIndexIVF.h>
#include <faiss/gpu/StandardGpuResources.h>

/// The indexes that bench_ivf races.
namespace faiss_bits::bench {

/// What lists hold, by its name: ivf_flat, ivf_sq8, ivf_sq6, ivf_sq4, ivf_fp16,
/// or ivf_pqM with M parts of 8 bits.
struct IvfKind {
    std::string name = "ivf_flat";

    bool isFlat() const {
        return name == "ivf_flat";
    }

    /// M of ivf_pqM, else 0.
    int parts() const {
        return name.starts_with("ivf_pq") ? std::atoi(name.c_str() + 6) : 0;
    }
};

/// Exits with 2 for a name that is none.
IvfKind parseIvfKind(const std::string& name);

/// What is trained.
struct IvfShape {
    IvfKind kind;
    faiss::MetricType metric = faiss::METRIC_L2;
    int d = 0;
    int nlist = 0;
    int iterations = 10;    ///< of k-means
    int pointsOfList = 256; ///< that it sees, at most
};

/// Of one index after another.
struct IvfResources {
    faiss::gpu::StandardGpuResources ofOurs;
    faiss::gpu::StandardGpuResources ofRival;
};

/// Ours and FAISS's, of the same centroids and codebook, each with resources
/// of its own.
class IvfIndexes {
   public:
    /// Trains with vectors [n, d] of the host. resources outlive it.
    IvfIndexes(
            IvfResources& resources,
            const IvfShape& shape,
            int64_t n,
            const float* vectors,
            bool withRival);
    ~IvfIndexes();

    /// Adds vectors [n, d], on the host or the device, to both.
    void add(int64_t n, const float* vectors);

    faiss::gpu::GpuIndexIVF& ours() {
        return *ours_;
    }

    /// Null: it was not wanted, or refused what we take (whyNot).
    faiss::gpu::GpuIndexIVF* rival() {
        return rival_.get();
    }
    const std::string& whyNot() const {
        return whyNot_;
    }

    /// Vectors of list `list` as codes say, by FAISS on the CPU; centroids and
    /// all: [length, d].
    std::vector<float> decoded(int64_t list) const;

    const IvfShape& shape() const {
        return shape_;
    }

   private:
    IvfShape shape_;
    std::string whyNot_;
    std::unique_ptr<faiss::IndexIVF> trained_; // on the CPU, without vectors
    std::unique_ptr<faiss::gpu::GpuIndexIVF> ours_;
    std::unique_ptr<faiss::gpu::GpuIndexIVF> rival_;
};

} // namespace faiss_bits::bench
