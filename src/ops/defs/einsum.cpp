// einsum: sums of products named by letters, done as a chain of batched matrix products from left
// to right.
#include <algorithm>
#include <string>
#include <vector>

#include "ops/op_def.h"

namespace prong {
namespace {

// A tensor whose dimensions carry labels: letters, and for what "..." stands for, numbers below 0
// counted from its end.
struct Labelled {
  Tensor tensor;
  std::vector<int> labels;
};

struct Equation {
  std::vector<std::vector<int>> inputs;  // labels of each operand; kEllipsis where "..." stands
  std::vector<int> output;
  static constexpr int kEllipsis = 1000;
};

std::vector<int> parse_term(const std::string& term, const std::string& equation) {
  std::vector<int> labels;
  bool seen = false;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (c == '.') {
      PRONG_CHECK(term.compare(i, 3, "...") == 0 && !seen, kRuntime, "einsum(): found '.' in \"",
                  equation, "\" that is not part of one ellipsis \"...\"");
      labels.push_back(Equation::kEllipsis);
      seen = true;
      i += 2;
    } else {
      PRONG_CHECK((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), kRuntime,
                  "einsum(): invalid subscript given at index ", i,
                  " in the equation string, subscripts must be in [a-zA-Z]");
      labels.push_back(c);
    }
  }
  return labels;
}

Equation parse(const std::string& text) {
  std::string s;
  std::copy_if(text.begin(), text.end(), std::back_inserter(s), [](char c) { return c != ' '; });
  const auto arrow = s.find("->");
  const std::string left = s.substr(0, arrow);
  Equation e;
  size_t start = 0;
  while (true) {
    const size_t comma = left.find(',', start);
    e.inputs.push_back(
        parse_term(left.substr(start, comma == std::string::npos ? comma : comma - start), text));
    if (comma == std::string::npos) break;
    start = comma + 1;
  }
  if (arrow != std::string::npos) {
    e.output = parse_term(s.substr(arrow + 2), text);
    return e;
  }
  // Without "->": the ellipsis, then the letters that occur once, in order of the alphabet
  // (capitals first).
  std::vector<int> letters;
  bool ellipsis = false;
  for (const auto& term : e.inputs)
    for (const int label : term)
      (label == Equation::kEllipsis ? (void)(ellipsis = true) : letters.push_back(label));
  std::sort(letters.begin(), letters.end());
  if (ellipsis) e.output.push_back(Equation::kEllipsis);
  for (size_t i = 0; i < letters.size(); ++i)
    if ((i == 0 || letters[i - 1] != letters[i]) &&
        (i + 1 == letters.size() || letters[i + 1] != letters[i]))
      e.output.push_back(letters[i]);
  return e;
}

// Writes -count .. -1 in place of "...".
std::vector<int> expand(const std::vector<int>& labels, int64_t count) {
  std::vector<int> out;
  for (const int label : labels) {
    if (label != Equation::kEllipsis) {
      out.push_back(label);
      continue;
    }
    for (int64_t i = -count; i < 0; ++i) out.push_back(static_cast<int>(i));
  }
  return out;
}

bool contains(const std::vector<int>& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// A label used twice in one operand takes the diagonal.
Labelled without_repeats(Labelled x) {
  for (size_t i = 0; i < x.labels.size(); ++i)
    for (size_t j = i + 1; j < x.labels.size(); ++j)
      if (x.labels[i] == x.labels[j]) {
        PRONG_CHECK(
            x.tensor.size(static_cast<int64_t>(i)) == x.tensor.size(static_cast<int64_t>(j)),
            kRuntime, "einsum(): subscript ", static_cast<char>(x.labels[i]),
            " is repeated for operand but the sizes don't match, ",
            x.tensor.size(static_cast<int64_t>(j)), " != ", x.tensor.size(static_cast<int64_t>(i)));
        const int label = x.labels[i];  // the diagonal comes last
        x.tensor = call_tensor("diagonal", x.tensor, int64_t{0}, static_cast<int64_t>(i),
                               static_cast<int64_t>(j));
        x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(j));
        x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(i));
        x.labels.push_back(label);
        return without_repeats(std::move(x));
      }
  return x;
}

// Sums away what nobody needs any more. Sums of integers are int64; of a product, only where there
// is more than one term to a sum, as in PyTorch.
Labelled keep_only(Labelled x, const std::vector<int>& needed, bool is_product = false) {
  Dims gone;
  std::vector<int> kept;
  bool adds_up = !is_product;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    if (contains(needed, x.labels[i]))
      kept.push_back(x.labels[i]);
    else
      gone.push_back(static_cast<int64_t>(i));
    adds_up |= !gone.empty() && gone.back() == static_cast<int64_t>(i) &&
               x.tensor.size(static_cast<int64_t>(i)) > 1;
  }
  if (!gone.empty())
    x.tensor = adds_up ? call_tensor("sum", x.tensor, gone)
                       : call_tensor("sum", x.tensor, gone, false, x.tensor.dtype());
  x.labels = std::move(kept);
  return x;
}

Tensor arranged(const Labelled& x,
                const std::vector<int>& order) {  // missing labels become size-1 dimensions
  Dims dims, missing;
  for (size_t k = 0; k < order.size(); ++k) {
    const auto at = std::find(x.labels.begin(), x.labels.end(), order[k]);
    if (at == x.labels.end())
      missing.push_back(static_cast<int64_t>(k));
    else
      dims.push_back(at - x.labels.begin());
  }
  // A label of the tensor that the order leaves out has size 1 here.
  Tensor t = x.tensor;
  for (size_t i = x.labels.size(); i-- > 0;)
    if (!contains(order, x.labels[i])) {
      t = call_tensor("squeeze.dim", t, static_cast<int64_t>(i));
      for (int64_t& d : dims)
        if (d > static_cast<int64_t>(i)) --d;
    }
  bool in_order = true;
  for (size_t k = 0; k < dims.size(); ++k) in_order &= dims[k] == static_cast<int64_t>(k);
  if (!in_order) t = call_tensor("permute", t, dims);
  for (const int64_t k : missing) t = call_tensor("unsqueeze", t, k);
  return t;
}

// Product of two operands; labels in both and not needed later are summed, as a batched matrix
// product.
Labelled multiply(Labelled a, Labelled b, const std::vector<int>& needed) {
  std::vector<int> batch, only_a, only_b, summed;
  const auto size_in = [](const Labelled& x, int label) {
    return x.tensor.size(std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin());
  };
  for (const int label : a.labels) {
    if (!contains(b.labels, label) || size_in(b, label) == 1)
      only_a.push_back(label);
    else if (size_in(a, label) == 1)
      only_b.push_back(label);
    else
      (contains(needed, label) ? batch : summed).push_back(label);
  }
  for (const int label : b.labels)
    if (!contains(a.labels, label)) only_b.push_back(label);
  // A size-1 dimension that the other side has too is dropped from this side: it is broadcast.
  const auto joined = [](std::initializer_list<const std::vector<int>*> parts) {
    std::vector<int> all;
    for (const auto* part : parts) all.insert(all.end(), part->begin(), part->end());
    return all;
  };
  const auto extent = [&](const Labelled& x, const std::vector<int>& labels) {
    int64_t n = 1;
    for (const int label : labels) n *= size_in(x, label);
    return n;
  };
  const int64_t nb = extent(a, batch), na = extent(a, only_a), nc = extent(b, only_b),
                ns = extent(a, summed);
  const Tensor x =
      call_tensor("reshape", arranged(a, joined({&batch, &only_a, &summed})), Dims{nb, na, ns});
  const Tensor y =
      call_tensor("reshape", arranged(b, joined({&batch, &summed, &only_b})), Dims{nb, ns, nc});
  const std::vector<int> labels = joined({&batch, &only_a, &only_b});
  Dims sizes;
  for (const int label : batch) sizes.push_back(size_in(a, label));
  for (const int label : only_a) sizes.push_back(size_in(a, label));
  for (const int label : only_b) sizes.push_back(size_in(b, label));
  const DType common = promote(x.dtype(), y.dtype());
  const Tensor products =
      call_tensor("bmm", call_tensor("to", x, common), call_tensor("to", y, common));
  return keep_only({call_tensor("reshape", products, sizes), labels}, needed, true);
}

std::vector<std::vector<int>> label_operands(Equation& e, const std::vector<TensorMeta>& operands) {
  PRONG_CHECK(!operands.empty(), kRuntime, "einsum(): must provide at least one operand");
  PRONG_CHECK(e.inputs.size() == operands.size(), kRuntime,
              e.inputs.size() < operands.size()
                  ? "einsum(): more operands were provided than specified in the equation"
                  : "einsum(): fewer operands were provided than specified in the equation");
  int64_t longest = 0;
  std::vector<std::vector<int>> labels;
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool has_ellipsis = contains(e.inputs[i], Equation::kEllipsis);
    const int64_t named = static_cast<int64_t>(e.inputs[i].size()) - (has_ellipsis ? 1 : 0),
                  rank = operands[i].rank();
    PRONG_CHECK(has_ellipsis ? rank >= named : rank == named, kRuntime,
                "einsum(): the number of subscripts in the equation (", named,
                has_ellipsis ? ") is more than the number of dimensions ("
                             : ") does not match the number of dimensions (",
                rank, ") for operand ", i, has_ellipsis ? "" : " and no ellipsis was given");
    longest = std::max(longest, has_ellipsis ? rank - named : 0);
    labels.push_back(expand(e.inputs[i], rank - named));
  }
  e.output = expand(e.output, longest);
  return labels;
}

TensorMeta einsum_meta(const std::string& equation, const std::vector<TensorMeta>& operands) {
  Equation e = parse(equation);
  const auto labels = label_operands(e, operands);
  TensorMeta result{{}, operands[0].dtype};
  for (size_t k = 0; k < e.output.size(); ++k) {
    const int label = e.output[k];
    PRONG_CHECK(std::count(e.output.begin(), e.output.end(), label) == 1, kRuntime,
                "einsum(): output subscript ", static_cast<char>(label),
                " appears more than once in the output");
    int64_t size = -1;
    for (size_t i = 0; i < labels.size(); ++i)
      for (size_t d = 0; d < labels[i].size(); ++d)
        if (labels[i][d] == label) size = std::max(size, operands[i].sizes[d]);
    PRONG_CHECK(size >= 0, kRuntime, "einsum(): output subscript ", static_cast<char>(label),
                " does not appear in the equation for any input operand");
    result.sizes.push_back(size);
  }
  // A label has one size everywhere, save 1.
  std::vector<std::pair<int, int64_t>> seen;
  for (size_t i = 0; i < labels.size(); ++i)
    for (size_t d = 0; d < labels[i].size(); ++d) {
      const int64_t n = operands[i].sizes[d];
      auto at = std::find_if(seen.begin(), seen.end(),
                             [&](const auto& s) { return s.first == labels[i][d]; });
      if (at == seen.end())
        seen.emplace_back(labels[i][d], n);
      else if (at->second == 1)
        at->second = n;
      else
        PRONG_CHECK(n == 1 || n == at->second, kRuntime, "einsum(): subscript ",
                    static_cast<char>(labels[i][d]), " has size ", n, " for operand ", i,
                    " which does not broadcast with previously seen size ", at->second);
    }
  return result;
}

Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands) {
  std::vector<TensorMeta> metas;
  for (const Tensor& t : operands) metas.push_back(t.meta());
  einsum_meta(equation, metas);  // all checks
  Equation e = parse(equation);
  const auto labels = label_operands(e, metas);
  const auto needed_after = [&](size_t i) {
    std::vector<int> needed = e.output;
    for (size_t j = i + 1; j < labels.size(); ++j)
      needed.insert(needed.end(), labels[j].begin(), labels[j].end());
    return needed;
  };
  Labelled x = keep_only(without_repeats({operands[0], labels[0]}), needed_after(0));
  for (size_t i = 1; i < operands.size(); ++i) {
    Labelled y = without_repeats({operands[i], labels[i]});
    std::vector<int> needed = needed_after(i), needed_by_both = needed;
    needed_by_both.insert(needed_by_both.end(), x.labels.begin(), x.labels.end());
    x = multiply(std::move(x), keep_only(std::move(y), needed_by_both), needed);
  }
  return call_tensor("alias", arranged(x, e.output));
}

}  // namespace

void register_einsum(Registry& r) {
  r.add("einsum(equation: str, operands: Tensor[]) -> Tensor")
      .doc(
          "Sums of products of the operands' elements, by Einstein's convention: \"bij,bjk->bik\".")
      .where({.method = false})
      .family(Family::kMatmul)
      .shape([](const std::string& equation, const std::vector<TensorMeta>& operands) {
        return einsum_meta(equation, operands);
      })
      .kernel([](const std::string& equation, const std::vector<Tensor>& operands) {
        return einsum(equation, operands);
      })
      .cost([](const OpDef&, std::span<const IValue> args) {
        double n = 1;
        for (const IValue& t : args[1].items())
          n *= static_cast<double>(std::max<int64_t>(1, meta_from(t).numel()));
        return Cost{2 * n, 4 * n};
      })
      .composite()
      .no_vmap("vmap is not built yet")
      .samples({{"'ij,jk->ik', [t(2, 3), t(3, 4)]"},
                {"'ii', [t(3, 3)]"},
                {"'ij->ji', [t(2, 3)]"},
                {"'b...i,...ij->b...j', [t(2, 3, 4), t(3, 4, 5)]"},
                {"'i,j,k->kij', [t(2), t(3), t(4)]"},
                {"'ij,ij->', [t(2, 3), t(2, 3)]"},
                {"'ij,jk', [t(0, 3), t(3, 4)]"}})
      .reference("np.einsum(equation, *operands)");
}

}  // namespace prong
