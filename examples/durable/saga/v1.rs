//! The first release: three bookings, one after the other. If the run ends without the third, clean-up steps cancel the
//! others.

use std::sync::Arc;

use workflow_core::prelude::*;

use crate::agency::Agency;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct Trip {
    pub(crate) traveller: String,
    pub(crate) flight: String,
    pub(crate) hotel: String,
    pub(crate) car: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Flight {
    number: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Hotel {
    number: String,
}

/// The run waits here, for days if need be, and across releases.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
pub(crate) struct Confirm {
    question: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct Booked {
    pub(crate) numbers: Vec<String>,
}

pub(crate) struct Trips {
    pub(crate) agency: Arc<Agency>,
}

#[workflow]
impl Trips {
    #[step]
    async fn book_flight(&self, trip: &Trip, info: &RunInfo, display: &Display) -> Result<Flight, StepError> {
        Ok(Flight { number: self.agency.book("flight", &trip.flight, &trip.traveller, info, display)? })
    }

    #[step]
    async fn book_hotel(
        &self,
        trip: &Trip,
        _flight: &Flight,
        info: &RunInfo,
        display: &Display,
    ) -> Result<(Hotel, Confirm), StepError> {
        let number = self.agency.book("hotel", &trip.hotel, &trip.traveller, info, display)?;
        let Trip { traveller, flight, hotel, .. } = trip;
        let question = format!("{traveller}: {flight} and {hotel} are booked. Book the car as well?");
        Ok((Hotel { number }, Confirm { question }))
    }

    #[step]
    async fn book_car(
        &self,
        trip: &Trip,
        flight: &Flight,
        hotel: &Hotel,
        confirmed: &Reply<Confirm>,
        info: &RunInfo,
        display: &Display,
    ) -> Result<Booked, StepError> {
        if !**confirmed {
            return Err(StepError::rejected(format!("{} does not want to travel", trip.traveller)));
        }
        let car = self.agency.book("car", &trip.car, &trip.traveller, info, display)?;
        Ok(Booked { numbers: vec![flight.number.clone(), hotel.number.clone(), car] })
    }

    /// Runs at every end but a completed one, after `cancel_hotel`: the latest booking is undone first.
    #[step(on_end)]
    async fn cancel_flight(
        &self,
        flight: &Flight,
        info: &RunInfo,
        display: &Display,
    ) -> Result<(), StepError> {
        self.agency.cancel(&flight.number, info, display)
    }

    #[step(on_end)]
    async fn cancel_hotel(&self, hotel: &Hotel, info: &RunInfo, display: &Display) -> Result<(), StepError> {
        self.agency.cancel(&hotel.number, info, display)
    }
}
