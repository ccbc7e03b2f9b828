//! Everything that can be chosen about a training run, with what experiment
//! chose as the default. A file of this is a model's recipe.

use super::bc::{self, CloneConfig};
use super::dqn::DqnConfig;
use super::env::Curriculum;
use super::learner::OptimiserConfig;
use super::rollout::RolloutConfig;
use crate::policy::network::Shape;
use crate::policy::{Quantiser, Tokenizer};
use crate::sim::policies;
use serde::{Deserialize, Serialize};
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Algo {
    /// Deep Q-learning, as in the paper's Algorithm 1.
    Dqn,
    /// Behavioural cloning of a policy of the simulator.
    Bc,
    /// Policy improvement by rollouts.
    Rollout,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkConfig {
    pub width: usize,
    pub layers: usize,
    pub heads: usize,
    pub hidden: usize,
    /// An embedding of slack and work together.
    pub pairs: bool,
}

impl Default for NetworkConfig {
    fn default() -> NetworkConfig {
        NetworkConfig {
            width: 32,
            layers: 1,
            heads: 2,
            hidden: 64,
            pairs: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenConfig {
    pub slack_bins: usize,
    pub slack_us: (i64, i64),
    pub work_bins: usize,
    pub work_us: (i64, i64),
    pub classes: u8,
    pub doubts: u8,
    /// 5 to tell four stretches of load apart, 1 for none.
    pub loads: u8,
}

impl Default for TokenConfig {
    fn default() -> TokenConfig {
        TokenConfig {
            slack_bins: 48,
            slack_us: (200, 1_000_000),
            work_bins: 16,
            work_us: (200, 100_000),
            classes: 2,
            doubts: 4,
            loads: 1,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What the model is called in its file.
    pub name: String,
    pub algo: Algo,
    pub seed: u64,
    /// A round draws machines, runs them, and takes steps on what was seen.
    pub rounds: u32,
    pub machines: usize,
    /// How often each thing seen is learned from, about.
    pub passes: f64,
    /// Simulated time per machine.
    pub episode_ms: f64,
    /// Samples kept; the oldest go first.
    pub replay: usize,
    /// Rounds of cloning before anything else.
    pub warm_rounds: u32,
    /// Validate after so many rounds, on so many sets of every kind.
    pub validate_every: u32,
    pub validation_sets: usize,
    /// Stop after so many validations without a better one; 0: never.
    pub patience: u32,
    pub network: NetworkConfig,
    pub tokens: TokenConfig,
    pub optimiser: OptimiserConfig,
    pub curriculum: Curriculum,
    pub rollout: RolloutConfig,
    pub clone: CloneConfig,
    pub dqn: DqnConfig,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            name: "temponet".into(),
            algo: Algo::Bc,
            seed: 1,
            rounds: 100,
            machines: 64,
            passes: 6.0,
            episode_ms: 2000.0,
            replay: 200_000,
            warm_rounds: 0,
            validate_every: 5,
            validation_sets: 8,
            patience: 0,
            network: NetworkConfig::default(),
            tokens: TokenConfig::default(),
            optimiser: OptimiserConfig::default(),
            curriculum: Curriculum::default(),
            rollout: RolloutConfig::default(),
            clone: CloneConfig::default(),
            dqn: DqnConfig::default(),
        }
    }
}

impl Config {
    pub fn load(path: &Path) -> anyhow::Result<Config> {
        use anyhow::Context;
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("{} is no training recipe", path.display()))
    }

    pub fn tokenizer(&self) -> Result<Tokenizer, String> {
        let tokens = &self.tokens;
        let log = |(first, last): (i64, i64), bins, what| {
            Quantiser::log(first.saturating_mul(1000), last.saturating_mul(1000), bins)
                .map_err(|error| format!("{what}: {error}"))
        };
        let slack = log(tokens.slack_us, tokens.slack_bins, "slack bins")?;
        let work = log(tokens.work_us, tokens.work_bins, "work bins")?;
        let tokenizer = Tokenizer::new(slack, work, tokens.classes, tokens.doubts);
        Ok(tokenizer
            .map_err(|e| e.to_string())?
            .with_loads(tokens.loads))
    }

    pub fn shape(&self) -> Result<Shape, String> {
        let n = &self.network;
        let shape = Shape::new(&self.tokenizer()?, n.width, n.layers, n.heads, n.hidden);
        Ok(shape
            .map_err(|error| error.to_string())?
            .with_pairs(n.pairs))
    }

    /// Everything that would fail later, before the first step.
    pub fn check(&self) -> Result<(), String> {
        let of = |part: &'static str| move |error: String| format!("[{part}] {error}");
        self.shape()?;
        self.optimiser.check().map_err(of("optimiser"))?;
        self.curriculum.check().map_err(of("curriculum"))?;
        self.rollout.check().map_err(of("rollout"))?;
        self.dqn.check().map_err(of("dqn"))?;
        let teacher = &self.clone.teacher;
        let special = [bc::BEST, bc::RULE, bc::ORACLE];
        if !special.contains(&teacher.as_str()) && policies::find(teacher).is_none() {
            return Err(format!(
                "[clone] there is no policy called {teacher:?}, and it is none of {}",
                special.join(", ")
            ));
        }
        self.clone.check().map_err(of("clone"))?;
        let counts = [
            ("rounds", self.rounds as usize),
            ("machines", self.machines),
            ("replay", self.replay),
            ("validate_every", self.validate_every as usize),
            ("validation_sets", self.validation_sets),
        ];
        for (name, count) in counts {
            if count == 0 {
                return Err(format!("{name} is 0; it must be at least 1"));
            }
        }
        if !(self.passes > 0.0 && self.passes <= 1000.0) {
            return Err(format!("passes is {}; it must be above 0", self.passes));
        }
        if !(self.episode_ms >= 100.0 && self.episode_ms <= 60_000.0) {
            return Err(format!(
                "episode_ms is {}; it must be within 100 and 60000",
                self.episode_ms
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_comes_back_the_same_and_unknown_keys_are_refused() {
        let text = toml::to_string(&Config::default()).unwrap();
        assert_eq!(toml::from_str::<Config>(&text).unwrap(), Config::default());
        assert!(toml::from_str::<Config>("round = 3").is_err());
        assert!(toml::from_str::<Config>("[dqn]\ngama = 3.0").is_err());
    }

    #[test]
    fn the_default_recipe_makes_the_default_network() {
        use crate::policy::network::Model;
        let config = Config::default();
        assert_eq!(config.tokenizer().unwrap(), Model::default_tokenizer());
        assert_eq!(config.shape().unwrap(), Model::default_shape());
    }

    #[test]
    fn the_shipped_model_is_what_its_recipe_makes() {
        use crate::policy::network::Model;
        let recipe: Config = toml::from_str(include_str!("../../models/temponet.toml")).unwrap();
        let model = Model::shipped();
        assert_eq!(&recipe.tokenizer().unwrap(), model.tokenizer());
        assert_eq!(&recipe.shape().unwrap(), model.shape());
    }

    #[test]
    fn bad_recipes_are_refused_with_the_reason() {
        let refuse = |text: &str| toml::from_str::<Config>(text).unwrap().check().unwrap_err();
        assert!(Config::default().check().is_ok());
        assert!(refuse("rounds = 0").contains("rounds is 0"));
        assert!(refuse("[network]\nwidth = 30\nheads = 4").contains("remainder"));
        assert!(refuse("[clone]\nteacher = \"nobody\"").contains("nobody"));
        assert!(refuse("[tokens]\nslack_bins = 3").contains("levels"));
        assert!(refuse("[rollout]\nchoices = 1").contains("choices"));
    }
}
