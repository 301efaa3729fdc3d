#pragma once
// A hypothesis about wrong elements, and the test whether chance explains it.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "conformance/diagnose/hints/wrong_output.h"

namespace assay::conformance {

// How many wrong elements a hypothesis explains, by kind.
struct Tally {
  std::int64_t elements = 0;  // all that are wrong
  std::array<std::int64_t, 4> kinds{};
  std::int64_t explained() const { return kinds[0] + kinds[1] + kinds[2] + kinds[3]; }
  // Whether all that are explained are of this kind.
  bool only(std::size_t kind) const { return kinds[kind] == explained(); }
  void add(std::span<const std::int8_t> found);
};

// "all 12", "3 of 12", "the only wrong element".
std::string share_text(const Tally& tally);

// Elements that are wrong at random, to measure what chance explains.
class Chance {
 public:
  Chance(const WrongOutput& output, std::span<const Word> sample);
  std::span<const Word> random() const { return random_; }  // any bits, anywhere
  std::span<const Word> drawn() const { return drawn_; }    // what is expected elsewhere
  // Wrong elements of the sample with other contents: values expected elsewhere, and values close to the expected one: one
  // step away, twice, half.
  struct Stray {
    Word word;
    std::int64_t from = -1;  // the element that the contents come from
  };
  std::span<const Stray> strays() const { return strays_; }
  std::span<const Word> close() const { return close_; }
  double least() const { return least_; }

 private:
  std::vector<Word> random_, drawn_, close_;
  std::vector<Stray> strays_;
  double least_ = 0;  // chance of a few special bit patterns
};

// Properties of a hypothesis besides its test of an element.
struct Claim {
  double least_share = 0.5;  // of the wrong elements that nothing else explains
  double log_choices = 0;    // natural logarithm of the number of alternatives it was chosen from
  double chance = -1;        // for a random element; below 0: measured
  bool leads = false;        // precedes hypotheses that explain more
};

class Hypothesis {
 public:
  explicit Hypothesis(Claim claim) : claim_(claim) {}
  virtual ~Hypothesis() = default;
  const Claim& claim() const { return claim_; }
  // For each element the kind of explanation, 0 to 3, or -1 for none.
  virtual void explain(std::span<const Word> words, std::span<std::int8_t> kinds) const = 0;
  virtual std::string text(const Tally& tally) const = 0;
  // The share of randomly wrong elements that it explains.
  virtual double chance(const Chance& chance) const;
  // Whether the explained part of the sample varies enough to be evidence.
  virtual bool is_varied(std::span<const Word>, std::span<const std::int8_t>) const { return true; }

 protected:
  double rate(std::span<const Word> words) const;
  Claim claim_;
};
struct Hypotheses {
  std::vector<std::unique_ptr<Hypothesis>> list;
  std::int64_t places = 0;  // that the search for them has read
};

// Explains each element by its own contents: explain(word) returns the kind, text(tally) the hint.
template <class Explain, class Text>
void propose(Hypotheses& hypotheses, Claim claim, Explain explain, Text text) {
  class Rule : public Hypothesis {
   public:
    Rule(Claim claim, Explain explain, Text text) : Hypothesis(claim), explain_(std::move(explain)), text_(std::move(text)) {}
    void explain(std::span<const Word> words, std::span<std::int8_t> kinds) const override {
      for (std::size_t i = 0; i < words.size(); ++i) kinds[i] = static_cast<std::int8_t>(explain_(words[i]));
    }
    std::string text(const Tally& tally) const override { return text_(tally); }

   private:
    Explain explain_;
    Text text_;
  };
  hypotheses.list.push_back(std::make_unique<Rule>(claim, std::move(explain), std::move(text)));
}

// An element holds the value that is expected at another place.
class Relocation : public Hypothesis {
 public:
  Relocation(const WrongOutput& output, Claim claim) : Hypothesis(claim), output_(output) {}
  virtual std::int64_t source(const Word& word) const = 0;  // the element, or -1
  double chance(const Chance& chance) const override;
  // At least four elements with three different contents.
  bool is_varied(std::span<const Word> words, std::span<const std::int8_t> kinds) const override;

 protected:
  const WrongOutput& output_;
};

// source(word) returns the element whose expected value the wrong element holds, or -1.
template <class Source, class Text>
void propose_relocation(Hypotheses& hypotheses, const WrongOutput& output, Claim claim, Source source, Text text) {
  class Moved : public Relocation {
   public:
    Moved(const WrongOutput& output, Claim claim, Source source, Text text)
        : Relocation(output, claim), source_(std::move(source)), text_(std::move(text)) {}
    std::int64_t source(const Word& word) const override { return source_(word); }
    void explain(std::span<const Word> words, std::span<std::int8_t> kinds) const override {
      for (std::size_t i = 0; i < words.size(); ++i) {
        const std::int64_t from = source_(words[i]);
        kinds[i] = from >= 0 && output_.want[from] == words[i].got ? 0 : -1;
      }
    }
    std::string text(const Tally& tally) const override { return text_(tally); }

   private:
    Source source_;
    Text text_;
  };
  hypotheses.list.push_back(std::make_unique<Moved>(output, claim, std::move(source), std::move(text)));
}

// Whether chance hardly explains as many: `explained` of `words` where each is explained with probability `chance`, by
// the best of e^log_choices hypotheses. Less than once in a million.
bool is_significant(std::int64_t explained, std::int64_t words, double chance, double log_choices);

// One family of hypotheses: adds those that could explain the sample. The places of the output that it reads are counted,
// and are at most a few millions, however large the output is.
void propose_poison(const WrongOutput& output, std::span<const Word> sample, Hypotheses& hypotheses);
void propose_special_values(const WrongOutput& output, std::span<const Word> sample, Hypotheses& hypotheses);
void propose_steps(const WrongOutput& output, std::span<const Word> sample, Hypotheses& hypotheses);
void propose_factors(const WrongOutput& output, std::span<const Word> sample, Hypotheses& hypotheses);
void propose_integers(const WrongOutput& output, std::span<const Word> sample, Hypotheses& hypotheses);
void propose_inputs(const WrongOutput& output, std::span<const Word> sample, Hypotheses& hypotheses);
void propose_displacements(const WrongOutput& output, std::span<const Word> sample, Hypotheses& hypotheses);
void propose_groups(const WrongOutput& output, std::span<const Word> sample, Hypotheses& hypotheses);
void propose_permutations(const WrongOutput& output, std::span<const Word> sample, Hypotheses& hypotheses);
void propose_layouts(const WrongOutput& output, std::span<const Word> sample, Hypotheses& hypotheses);

}  // namespace assay::conformance
