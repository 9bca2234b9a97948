#pragma once

#include <typeinfo>

#include <faiss/invlists/InvertedLists.h>

#include "kernels/cpu/ivf/IvfKnn.h"

namespace faiss_bits::detail {

/// FAISS's lists as the kernels read them.
class FaissLists : public cpu::IvfLists {
   public:
    explicit FaissLists(const faiss::InvertedLists& lists)
            : lists_(lists),
              array_(typeid(lists) == typeid(faiss::ArrayInvertedLists)
                             ? static_cast<const faiss::ArrayInvertedLists*>(
                                       &lists)
                             : nullptr) {}

    idx_t length(idx_t list) const override {
        return idx_t(
                array_ ? array_->ids[list].size() : lists_.list_size(list));
    }
    const float* open(idx_t list) const override {
        return reinterpret_cast<const float*>(
                array_ ? array_->codes[list].data() : lists_.get_codes(list));
    }
    void close(idx_t list, const float* rows) const override {
        if (!array_) {
            lists_.release_codes(list, reinterpret_cast<const uint8_t*>(rows));
        }
    }
    bool areKept() const override {
        return array_;
    }
    idx_t id(idx_t list, idx_t place) const override {
        return array_ ? array_->ids[list][place]
                      : lists_.get_single_id(list, place);
    }

   private:
    const faiss::InvertedLists& lists_;
    const faiss::ArrayInvertedLists* array_;
};

} // namespace faiss_bits::detail
