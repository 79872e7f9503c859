//! Exact nearest neighbours in three dimensions: a k-d tree (Bentley 1975) laid out in one array.

pub(crate) type Point = [f64; 3];

/// Slices up to this length are scanned, not split.
const LEAF: usize = 8;

/// Points such that the middle one of every slice splits it along one axis, the axes taking turns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nearest {
    points: Vec<(Point, u32)>,
}

impl Nearest {
    /// `points` have finite coordinates and distinct ids.
    pub fn new(mut points: Vec<(Point, u32)>) -> Self {
        split(&mut points, 0);
        Nearest { points }
    }

    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.points.iter().map(|&(_, id)| id)
    }

    /// Ids of the `k` ≥ 1 points nearest to `at` among those that `keep` admits, by (distance, id); fewer if there are fewer.
    pub fn query(&self, at: &Point, k: usize, keep: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut search = Search {
            at,
            k,
            keep,
            best: Vec::with_capacity(k + 1),
        };
        search.visit(&self.points, 0);
        search.best.into_iter().map(|(_, id)| id).collect()
    }
}

fn split(points: &mut [(Point, u32)], axis: usize) {
    if points.len() <= LEAF {
        return;
    }
    let middle = points.len() / 2;
    points.select_nth_unstable_by(middle, |a, b| a.0[axis].total_cmp(&b.0[axis]));
    let (low, high) = points.split_at_mut(middle);
    split(low, (axis + 1) % 3);
    split(&mut high[1..], (axis + 1) % 3);
}

struct Search<'a, F> {
    at: &'a Point,
    k: usize,
    keep: F,
    /// The nearest so far, sorted by (squared distance, id), at most `k`.
    best: Vec<(f64, u32)>,
}

impl<F: Fn(u32) -> bool> Search<'_, F> {
    fn visit(&mut self, points: &[(Point, u32)], axis: usize) {
        if points.len() <= LEAF {
            points.iter().for_each(|point| self.offer(point));
            return;
        }
        let middle = points.len() / 2;
        let gap = self.at[axis] - points[middle].0[axis];
        let (low, high) = (&points[..middle], &points[middle + 1..]);
        let (near, far) = if gap < 0.0 { (low, high) } else { (high, low) };
        self.visit(near, (axis + 1) % 3);
        self.offer(&points[middle]);
        // Equal distances are visited too, so that ties are settled by id and not by the layout.
        if self.best.len() < self.k || gap * gap <= self.best[self.k - 1].0 {
            self.visit(far, (axis + 1) % 3);
        }
    }

    fn offer(&mut self, &(point, id): &(Point, u32)) {
        let new = (square_distance(&point, self.at), id);
        let at = self.best.partition_point(|held| *held < new);
        if at < self.k && (self.keep)(id) {
            self.best.truncate(self.k - 1);
            self.best.insert(at.min(self.best.len()), new);
        }
    }
}

fn square_distance(a: &Point, b: &Point) -> f64 {
    (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2) + (a[2] - b[2]).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_tree_finds_what_a_full_scan_finds(
            points in prop::collection::vec(prop::array::uniform3(0_u8..4), 0..200),
            at in prop::array::uniform3(-1_i8..5), k in 1_usize..20, skip in 2_u32..5
        ) {
            let points: Vec<(Point, u32)> = points.iter().zip(0..).map(|(p, id)| (p.map(f64::from), id)).collect();
            let at = at.map(f64::from);
            let keep = |id: u32| !id.is_multiple_of(skip);
            let mut all: Vec<(f64, u32)> = points.iter().filter(|(_, id)| keep(*id))
                .map(|(p, id)| (square_distance(p, &at), *id)).collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let want: Vec<u32> = all.into_iter().take(k).map(|(_, id)| id).collect();
            prop_assert_eq!(Nearest::new(points).query(&at, k, keep), want);
        }
    }
}
